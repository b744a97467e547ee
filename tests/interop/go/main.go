// What a program with franz-go does with a broker, and prints of it: `SCENARIO SERVERS ARGUMENT`.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const epochMs = 1_700_000_000_000

var (
	servers string
	ctx     context.Context
)

func main() {
	limited, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ctx, servers = limited, os.Args[2]
	scenarios := map[string]func(string){
		"codec": codec, "transactions": transactions, "refused": refused,
		"group": group, "times": times, "admin": admin,
	}
	scenarios[os.Args[1]](os.Args[3])
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func client(options ...kgo.Opt) *kgo.Client {
	common := []kgo.Opt{
		kgo.SeedBrokers(servers),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}
	return must(kgo.NewClient(append(common, options...)...))
}

// reader consumes the first partition of orders from its start.
func reader(options ...kgo.Opt) *kgo.Client {
	start := map[int32]kgo.Offset{0: kgo.NewOffset().AtStart()}
	of := kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"orders": start})
	return client(append(options, of)...)
}

func records(from *kgo.Client, count int) []*kgo.Record {
	var found []*kgo.Record
	for len(found) < count {
		fetched := from.PollFetches(ctx)
		check(fetched.Err())
		found = append(found, fetched.Records()...)
	}
	return found
}

func values(records []*kgo.Record) string {
	var found []string
	for _, each := range records {
		found = append(found, string(each.Value))
	}
	sort.Strings(found)
	return strings.Join(found, " ")
}

func codec(name string) {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	producer := client(kgo.ProducerBatchCompression(codecs[name]))
	defer producer.Close()
	var sent []*kgo.Record
	for number := range 100 {
		sent = append(sent, &kgo.Record{
			Topic: "orders", Key: []byte("key"), Timestamp: time.UnixMilli(epochMs),
			Value:   []byte(strings.Repeat(fmt.Sprintf("value %d ", number), 20)),
			Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("1")}},
		})
	}
	check(producer.ProduceSync(ctx, sent...).FirstErr())
	consumer := reader()
	defer consumer.Close()
	for number, record := range records(consumer, 100) {
		same := string(record.Value) == string(sent[number].Value) && string(record.Key) == "key" &&
			record.Headers[0].Key == "h" && record.Timestamp.UnixMilli() == epochMs
		if !same {
			check(fmt.Errorf("another record %d", number))
		}
	}
}

func transactions(string) {
	producer := client(kgo.TransactionalID("t"))
	defer producer.Close()
	for _, value := range []string{"a", "b", "c"} {
		check(producer.BeginTransaction())
		check(producer.ProduceSync(ctx, &kgo.Record{Topic: "orders", Value: []byte(value)}).FirstErr())
		check(producer.EndTransaction(ctx, kgo.TransactionEndTry(value != "b")))
	}
	committed := reader(kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	defer committed.Close()
	fmt.Println(values(records(committed, 2)))
	every := reader(kgo.FetchIsolationLevel(kgo.ReadUncommitted()))
	defer every.Close()
	fmt.Println(values(records(every, 3)))
}

// refused sends four records in one batch; those that the digits name have no key.
func refused(culprits string) {
	producer := client(kgo.ProducerLinger(time.Second))
	defer producer.Close()
	var sent []*kgo.Record
	for index := range 4 {
		record := &kgo.Record{Topic: "compacted", Key: []byte("k"), Value: []byte("v")}
		if strings.Contains(culprits, fmt.Sprint(index)) {
			record.Key = nil
		}
		sent = append(sent, record)
	}
	for _, result := range producer.ProduceSync(ctx, sent...) {
		fmt.Println(errors.Is(result.Err, kerr.InvalidRecord), result.Err)
	}
}

func group(string) {
	plain := client()
	defer plain.Close()
	send := func(word string) {
		for partition := range 3 {
			value := []byte(fmt.Sprint(word, partition))
			record := &kgo.Record{Topic: "orders", Partition: int32(partition), Value: value}
			check(plain.ProduceSync(ctx, record).FirstErr())
		}
	}
	member := func() *kgo.Client {
		return client(kgo.ConsumerGroup("team"), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit())
	}
	send("early")
	first := member()
	fmt.Println(values(records(first, 3)))
	check(first.CommitUncommittedOffsets(ctx))
	first.Close()
	send("later")
	second := member()
	fmt.Println(values(records(second, 3)))
	check(second.CommitUncommittedOffsets(ctx))
	second.Close()
}

func times(string) {
	producer := client()
	defer producer.Close()
	for number := range 5 {
		at := time.UnixMilli(epochMs + int64(number))
		record := &kgo.Record{Topic: "orders", Timestamp: at, Value: []byte("v")}
		check(producer.ProduceSync(ctx, record).FirstErr())
	}
	asker := kadm.NewClient(producer)
	offset := func(listed kadm.ListedOffsets, err error) int64 {
		found, _ := must(listed, err).Lookup("orders", 0)
		check(found.Err)
		return found.Offset
	}
	fmt.Println(
		offset(asker.ListOffsetsAfterMilli(ctx, epochMs+3, "orders")),
		offset(asker.ListStartOffsets(ctx, "orders")),
		offset(asker.ListEndOffsets(ctx, "orders")),
	)
}

func admin(string) {
	asking := client()
	defer asking.Close()
	asker := kadm.NewClient(asking)
	configs := map[string]*string{"retention.ms": kadm.StringPtr("1000")}
	check(must(asker.CreateTopic(ctx, 2, 1, configs, "new")).Err)
	grown := must(asker.CreatePartitions(ctx, 2, "new"))
	check(grown["new"].Err)
	described := must(must(asker.DescribeTopicConfigs(ctx, "new")).On("new", nil))
	for _, config := range described.Configs {
		if config.Key == "retention.ms" {
			fmt.Println(*config.Value)
		}
	}
	fmt.Println(len(must(asker.ListTopics(ctx, "new"))["new"].Partitions))
	again, err := asker.CreateTopic(ctx, 1, 1, nil, "new")
	fmt.Println(errors.Is(err, kerr.TopicAlreadyExists) || errors.Is(again.Err, kerr.TopicAlreadyExists))
	_, err = asker.DeleteTopic(ctx, "new")
	check(err)
	fmt.Println(len(must(asker.Metadata(ctx)).Brokers))
}
