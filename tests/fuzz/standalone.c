/* SPDX-License-Identifier: MIT */
/* standalone.c - replays files, and the files of folders, through a fuzz target. None at all is a failure. */
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static size_t replayed;

static bool
replay_file(const char *path)
{
	mr_auto(buf_done) struct buf bytes = BUF_INIT;
	char block[4096];
	size_t n;
	FILE *file = fopen(path, "rb");

	if (!file) {
		fprintf(stderr, "cannot open '%s': %s\n", path, strerror(errno));
		return false;
	}
	while ((n = fread(block, 1, sizeof(block), file)) > 0)
		buf_add(&bytes, (struct mr_str){ block, n });
	(void)fclose(file);
	/* A copy of exactly that size, so that reading past its end is seen by the address sanitizer. */
	uint8_t *exact = malloc(bytes.len ? bytes.len : 1);
	if (!exact || !buf_ok(&bytes))
		abort();
	if (bytes.len > 0)
		memcpy(exact, bytes.ptr, bytes.len);
	(void)LLVMFuzzerTestOneInput(exact, bytes.len);
	free(exact);
	replayed++;
	return true;
}

static bool
replay(const char *path)
{
	DIR *dir = opendir(path);
	bool fine = true;

	if (!dir)
		return replay_file(path);
	for (struct dirent *entry; (entry = readdir(dir));) {
		if (entry->d_name[0] == '.')
			continue;
		mr_auto(buf_done) struct buf inside = BUF_INIT;
		buf_addf(&inside, "%s/%s", path, entry->d_name);
		fine = replay_file(buf_z(&inside)) && fine;
	}
	(void)closedir(dir);
	return fine;
}

int
main(int argc, char **argv)
{
	bool fine = true;

	(void)LLVMFuzzerTestOneInput(NULL, 0);
	for (int i = 1; i < argc; i++)
		fine = replay(argv[i]) && fine;
	printf("%zu inputs replayed\n", replayed);
	return fine && replayed > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
