/* Records what a process does to the files below a directory, in the order in which it does it.
 *
 * Preloaded into a process by LD_PRELOAD, with RECORDED_DIRECTORY, an absolute path, and RECORDED_JOURNAL.
 * A lock is held from before a call until it is recorded, so that the journal has the order of
 * the calls. A sync alone goes without: it has one entry before and one behind it, and what others
 * write meanwhile is in between. RECORDED_SYNC_US makes each sync take so many microseconds longer. An
 * entry is, in the machine's byte order: its kind (1 byte), a descriptor (4), two numbers (8 each),
 * the size of the text behind it (4), and the text. Calls that are not understood here have an entry
 * "?", which whoever reads it takes for an error.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define DESCRIPTORS 65536
#define REAL(name) real(#name)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char is_recorded[DESCRIPTORS];
static char root[PATH_MAX];
static size_t root_size;
static int journal = -1;
static useconds_t sync_us;

static void *real(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL) abort();
    return found;
}

static void put(char kind, int descriptor, int64_t first, int64_t second,
                const struct iovec *parts, int count, size_t size) {
    char head[25];
    int32_t number = descriptor;
    uint32_t length = (uint32_t)size;
    struct iovec all[1 + 64];
    head[0] = kind;
    memcpy(head + 1, &number, 4);
    memcpy(head + 5, &first, 8);
    memcpy(head + 13, &second, 8);
    memcpy(head + 21, &length, 4);
    if (count > 64) abort();
    all[0].iov_base = head;
    all[0].iov_len = sizeof head;
    int used = 1;
    for (int i = 0; i < count && size > 0; i++) {
        size_t part = parts[i].iov_len < size ? parts[i].iov_len : size;
        all[used].iov_base = parts[i].iov_base;
        all[used++].iov_len = part;
        size -= part;
    }
    if (syscall(SYS_writev, journal, all, used) != (ssize_t)(sizeof head + length)) abort();
}

static void put_text(char kind, int descriptor, int64_t first, const char *text, size_t size) {
    struct iovec part = {(void *)text, size};
    put(kind, descriptor, first, 0, &part, 1, size);
}

__attribute__((constructor)) static void begin(void) {
    const char *directory = getenv("RECORDED_DIRECTORY"), *path = getenv("RECORDED_JOURNAL");
    const char *longer = getenv("RECORDED_SYNC_US");
    if (directory == NULL || path == NULL) return;
    snprintf(root, sizeof root, "%s", directory);
    root_size = strlen(root);
    sync_us = longer == NULL ? 0 : (useconds_t)atoi(longer);
    journal = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (journal < 0) abort();
    put_text('P', getpid(), 0, "", 0);
}

/* Writes the path of a name, relative to the recorded directory, and returns whether it is below it. */
static int below(int at, const char *name, char *path) {
    char whole[PATH_MAX * 2];
    if (journal < 0 || name == NULL) return 0;
    if (name[0] == '/') {
        snprintf(whole, sizeof whole, "%s", name);
    } else {
        char link[64];
        if (at == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
        else snprintf(link, sizeof link, "/proc/self/fd/%d", at);
        ssize_t size = readlink(link, whole, PATH_MAX);
        if (size < 0) return 0;
        whole[size] = 0;
        if (name[0] != 0 && strcmp(name, ".") != 0) {
            whole[size] = '/';
            snprintf(whole + size + 1, sizeof whole - (size_t)size - 1, "%s", name);
        }
    }
    size_t size = strlen(whole);
    while (size > 1 && whole[size - 1] == '/') whole[--size] = 0;
    if (strncmp(whole, root, root_size) != 0) return 0;
    if (whole[root_size] != 0 && whole[root_size] != '/') return 0;
    snprintf(path, PATH_MAX, "%s", whole[root_size] == 0 ? "" : whole + root_size + 1);
    return 1;
}

static int known(int descriptor) {
    return journal >= 0 && descriptor >= 0 && descriptor < DESCRIPTORS && is_recorded[descriptor];
}

static int opened(int at, const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    if (!below(at, name, path)) return (int)syscall(SYS_openat, at, name, flags, mode);
    pthread_mutex_lock(&lock);
    /* Whether it was there before is for the reader of the journal to know. */
    int result = (int)syscall(SYS_openat, at, name, flags, mode), error = errno;
    if (result >= 0 && result < DESCRIPTORS) {
        is_recorded[result] = 1;
        put_text('O', result, flags & (O_CREAT | O_TRUNC | O_DIRECTORY), path, strlen(path));
    } else if (result >= 0) {
        abort();
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

#define OPENED(at, name, flags)                              \
    mode_t mode = 0;                                         \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {                 \
        va_list more;                                        \
        va_start(more, flags);                               \
        mode = va_arg(more, mode_t);                         \
        va_end(more);                                        \
    }                                                        \
    return opened(at, name, flags, mode)

int open(const char *name, int flags, ...) { OPENED(AT_FDCWD, name, flags); }
int open64(const char *name, int flags, ...) { OPENED(AT_FDCWD, name, flags); }
int openat(int at, const char *name, int flags, ...) { OPENED(at, name, flags); }
int openat64(int at, const char *name, int flags, ...) { OPENED(at, name, flags); }
int creat(const char *name, mode_t mode) {
    return opened(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

int close(int descriptor) {
    if (!known(descriptor)) return (int)syscall(SYS_close, descriptor);
    pthread_mutex_lock(&lock);
    is_recorded[descriptor] = 0;
    int result = (int)syscall(SYS_close, descriptor), error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

static ssize_t wrote(int descriptor, const struct iovec *parts, int count, ssize_t result) {
    int error = errno;
    if (result > 0) {
        /* Of a file that is appended to, the place is known only now. */
        int64_t end = syscall(SYS_lseek, descriptor, 0, SEEK_CUR);
        put('W', descriptor, end - result, 0, parts, count, (size_t)result);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

ssize_t write(int descriptor, const void *data, size_t size) {
    struct iovec part = {(void *)data, size};
    if (!known(descriptor)) return syscall(SYS_write, descriptor, data, size);
    pthread_mutex_lock(&lock);
    return wrote(descriptor, &part, 1, syscall(SYS_write, descriptor, data, size));
}

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    if (!known(descriptor)) return syscall(SYS_writev, descriptor, parts, count);
    pthread_mutex_lock(&lock);
    /* So many as an entry takes; callers go on behind what was written. */
    if (count > 64) count = 64;
    return wrote(descriptor, parts, count, syscall(SYS_writev, descriptor, parts, count));
}

static int resized(int descriptor, int64_t size) {
    if (!known(descriptor)) return (int)syscall(SYS_ftruncate, descriptor, size);
    pthread_mutex_lock(&lock);
    int result = (int)syscall(SYS_ftruncate, descriptor, size), error = errno;
    if (result == 0) put_text('T', descriptor, size, "", 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

int ftruncate(int descriptor, off_t size) { return resized(descriptor, size); }
int ftruncate64(int descriptor, off64_t size) { return resized(descriptor, size); }

static int cut_by_name(const char *name, int64_t size) {
    char path[PATH_MAX];
    if (!below(AT_FDCWD, name, path)) return (int)syscall(SYS_truncate, name, size);
    pthread_mutex_lock(&lock);
    int result = (int)syscall(SYS_truncate, name, size), error = errno;
    if (result == 0) put_text('t', -1, size, path, strlen(path));
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

int truncate(const char *name, off_t size) { return cut_by_name(name, size); }
int truncate64(const char *name, off64_t size) { return cut_by_name(name, size); }

static int synced(int descriptor, long call) {
    static int64_t last;
    if (!known(descriptor)) return (int)syscall(call, descriptor);
    pthread_mutex_lock(&lock);
    int64_t number = ++last;
    put_text('S', descriptor, number, "", 0);
    pthread_mutex_unlock(&lock);
    if (sync_us) usleep(sync_us);
    int result = (int)syscall(call, descriptor), error = errno;
    pthread_mutex_lock(&lock);
    if (result == 0) put_text('s', descriptor, number, "", 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

int fsync(int descriptor) { return synced(descriptor, SYS_fsync); }
int fdatasync(int descriptor) { return synced(descriptor, SYS_fdatasync); }

static int renamed(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    char both[PATH_MAX * 2], second[PATH_MAX];
    int is_below = below(from_at, from, both), goes_below = below(to_at, to, second);
    if (!is_below && !goes_below)
        return (int)syscall(SYS_renameat2, from_at, from, to_at, to, flags);
    pthread_mutex_lock(&lock);
    int result = (int)syscall(SYS_renameat2, from_at, from, to_at, to, flags), error = errno;
    if (result == 0) {
        size_t size = strlen(both) + 1;
        snprintf(both + size, sizeof both - size, "%s", second);
        put_text(is_below && goes_below && !flags ? 'R' : '?', -1, 0, both, size + strlen(second));
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

int rename(const char *from, const char *to) { return renamed(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int from_at, const char *from, int to_at, const char *to) {
    return renamed(from_at, from, to_at, to, 0);
}
int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    return renamed(from_at, from, to_at, to, flags);
}

static int removed(int at, const char *name, int flags) {
    char path[PATH_MAX];
    if (!below(at, name, path)) return (int)syscall(SYS_unlinkat, at, name, flags);
    pthread_mutex_lock(&lock);
    int result = (int)syscall(SYS_unlinkat, at, name, flags), error = errno;
    if (result == 0) put_text('U', -1, 0, path, strlen(path));
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

int unlink(const char *name) { return removed(AT_FDCWD, name, 0); }
int unlinkat(int at, const char *name, int flags) { return removed(at, name, flags); }
int rmdir(const char *name) { return removed(AT_FDCWD, name, AT_REMOVEDIR); }

static int made(int at, const char *name, mode_t mode) {
    char path[PATH_MAX];
    if (!below(at, name, path)) return (int)syscall(SYS_mkdirat, at, name, mode);
    pthread_mutex_lock(&lock);
    int result = (int)syscall(SYS_mkdirat, at, name, mode), error = errno;
    if (result == 0) put_text('M', -1, 0, path, strlen(path));
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

int mkdir(const char *name, mode_t mode) { return made(AT_FDCWD, name, mode); }
int mkdirat(int at, const char *name, mode_t mode) { return made(at, name, mode); }

/* What nobody here does to a file that is recorded; where somebody does, the journal says so. */

static void not_understood(int descriptor, const char *call) {
    if (!known(descriptor)) return;
    pthread_mutex_lock(&lock);
    put_text('?', descriptor, 0, call, strlen(call));
    pthread_mutex_unlock(&lock);
}

#define NOT_UNDERSTOOD(type, name, declared, passed) \
    type name declared {                             \
        not_understood(descriptor, #name);           \
        type(*next) declared = REAL(name);           \
        return next passed;                          \
    }

NOT_UNDERSTOOD(ssize_t, pwrite, (int descriptor, const void *data, size_t size, off_t at),
               (descriptor, data, size, at))
NOT_UNDERSTOOD(ssize_t, pwrite64, (int descriptor, const void *data, size_t size, off64_t at),
               (descriptor, data, size, at))
NOT_UNDERSTOOD(ssize_t, pwritev, (int descriptor, const struct iovec *parts, int count, off_t at),
               (descriptor, parts, count, at))
NOT_UNDERSTOOD(int, fallocate, (int descriptor, int mode, off_t at, off_t size),
               (descriptor, mode, at, size))
NOT_UNDERSTOOD(int, posix_fallocate, (int descriptor, off_t at, off_t size), (descriptor, at, size))
NOT_UNDERSTOOD(ssize_t, copy_file_range,
               (int from, off64_t *from_at, int descriptor, off64_t *at, size_t size, unsigned flags),
               (from, from_at, descriptor, at, size, flags))
NOT_UNDERSTOOD(ssize_t, sendfile, (int descriptor, int from, off_t *at, size_t size),
               (descriptor, from, at, size))
NOT_UNDERSTOOD(ssize_t, sendfile64, (int descriptor, int from, off64_t *at, size_t size),
               (descriptor, from, at, size))

void *mmap(void *place, size_t size, int protection, int flags, int descriptor, off_t at) {
    if ((protection & PROT_WRITE) && (flags & MAP_SHARED)) not_understood(descriptor, "mmap");
    return (void *)syscall(SYS_mmap, place, size, protection, flags, descriptor, at);
}
