/* SPDX-License-Identifier: MIT */
/* disk.c - what a folder takes on the disk, and how many syncs this process and its children make. */
#include "rival.h"
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SYNCS "syncs.strace"
#define ATTACH_TRIES 200

extern char **environ;

static struct usage sum;

/* A file with several names counts once, whichever of them come by. */
static int
add_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)path, (void)at;
	if (type == FTW_F && st->st_nlink > 0) {
		sum.bytes += (double)st->st_size / (double)st->st_nlink;
		sum.allocated += (double)st->st_blocks * 512 / (double)st->st_nlink;
	} else if (type == FTW_D)
		sum.allocated += (double)st->st_blocks * 512;
	return 0;
}

struct usage
usage_of(const char *folder)
{
	sum = (struct usage){ 0 };
	if (nftw(folder, add_file, 32, FTW_PHYS) < 0)
		die("cannot look through '%s'", folder);
	return sum;
}

void
sync_disk(void)
{
	int disk = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (disk < 0 || syncfs(disk) < 0)
		die("cannot sync");
	(void)close(disk);
}

/* ---- Syncs ---- */

static pid_t tracer;

static void
pause_ms(long ms)
{
	(void)nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

static bool
is_traced(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[128];
	bool traced = false;

	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, "TracerPid:", 10) == 0)
			traced = atol(line + 10) > 0;
	if (file)
		(void)fclose(file);
	return traced;
}

bool
syncs_begin(struct bench *b, pid_t server)
{
	char *self = path_of("%d", (int)getpid()), *other = path_of("%d", (int)server);
	char *file = path_of("%s/" SYNCS, b->work);
	const char *argv[] = { "strace", "-f", "-qq", "-e", "trace=fsync,fdatasync,syncfs,sync,msync", "-o", file, "-p",
		self, server > 0 ? "-p" : NULL, other, NULL };

	(void)unlink(file);
	tracer = 0;
	if (is_here("strace") &&
	    posix_spawnp(&tracer, "strace", NULL, NULL, (char *const *)(uintptr_t)argv, environ) != 0)
		tracer = 0;
	for (int i = 0; tracer > 0 && i < ATTACH_TRIES && !is_traced(); i++) {
		pause_ms(10);
		if (waitpid(tracer, NULL, WNOHANG) == tracer) /* it may not */
			tracer = 0;
	}
	if (tracer > 0 && !is_traced())
		syncs_end();
	free(self);
	free(other);
	free(file);
	return tracer > 0;
}

/* Those of a server may come a moment after its answer, and strace writes a moment after them. */
long
syncs_now(void)
{
	FILE *file;
	char *line = NULL;
	size_t size = 0;
	long n = 0;

	pause_ms(100);
	file = fopen(SYNCS, "r");
	while (file && getline(&line, &size, file) > 0)
		n += strstr(line, "sync(") != NULL || strstr(line, "syncfs(") != NULL;
	free(line);
	if (file)
		(void)fclose(file);
	return n;
}

void
syncs_end(void)
{
	if (tracer > 0) {
		(void)kill(tracer, SIGTERM);
		(void)waitpid(tracer, NULL, 0);
	}
	tracer = 0;
	(void)unlink(SYNCS);
}
