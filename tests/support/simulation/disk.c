/* Tells what a process syncs and renames, before the system does it, to whoever watches.
   Preloaded: what it defines takes the place of the C library's functions. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void (*on_sync)(int file);
static void (*on_change)(const char *path);

void disk_watch(void (*sync)(int), void (*change)(const char *))
{
	on_sync = sync;
	on_change = change;
}

/* The disk is a simulated one: there is nothing to wait for. */
static int synced(int file, long number)
{
	if (!on_sync)
		return syscall(number, file);
	on_sync(file);
	return 0;
}

int fsync(int file)
{
	return synced(file, SYS_fsync);
}

int fdatasync(int file)
{
	return synced(file, SYS_fdatasync);
}

static void changes(const char *path)
{
	if (on_change)
		on_change(path);
}

int rename(const char *from, const char *to)
{
	changes(from);
	return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlink(const char *path)
{
	changes(path);
	return syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}
