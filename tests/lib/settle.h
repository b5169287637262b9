/* SPDX-License-Identifier: MIT */
/*
 * settle.h - for tests that rebuild a room file by file at its old path: its folder has another inode then, and the
 * user's configuration is about the old one. The user of the test says that it is the same room.
 */
#ifndef TESTS_SETTLE_H
#define TESTS_SETTLE_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The file of one room: its "Place:" line becomes that of the folder which is there now. */
static inline void
settle_record(const char *path)
{
	char text[8192], out[8192 + 64], place[64] = "", room[512] = "";
	size_t used = 0;
	struct stat st;
	FILE *f = fopen(path, "r");

	if (!f)
		return;
	size_t n = fread(text, 1, sizeof(text) - 1, f);

	(void)fclose(f);
	text[n] = '\0';
	(void)sscanf(text, "Room: maildir:%511[^\n]", room);
	if (room[0] == '\0' || stat(room, &st) != 0)
		return;
	/* "fs...:" is the file system's own number and stays; a device may be another. */
	const char *old = strstr(text, "\nPlace: fs");
	int kept = old ? (int)strcspn(old + 8, ":") : 0;

	if (old)
		(void)snprintf(place, sizeof(place), "Place: %.*s:%llu", kept, old + 8, (unsigned long long)st.st_ino);
	else
		(void)snprintf(place, sizeof(place), "Place: %llu:%llu", (unsigned long long)st.st_dev,
		    (unsigned long long)st.st_ino);
	for (char *rest = text, *line; (line = strsep(&rest, "\n")) && rest;)
		used += (size_t)snprintf(
		    out + used, sizeof(out) - used, "%s\n", strncmp(line, "Place: ", 7) == 0 ? place : line);
	f = fopen(path, "w");
	if (f) {
		(void)fwrite(out, 1, used, f);
		(void)fclose(f);
	}
}

static inline void
settle_configuration(const char *config_dir)
{
	char rooms[400], path[700];

	(void)snprintf(rooms, sizeof(rooms), "%s/rooms", config_dir);
	DIR *dir = opendir(rooms);

	for (struct dirent *e; dir && (e = readdir(dir));) {
		(void)snprintf(path, sizeof(path), "%s/%s", rooms, e->d_name);
		if (e->d_name[0] != '.')
			settle_record(path);
	}
	if (dir)
		(void)closedir(dir);
}

#endif
