/* SPDX-License-Identifier: MIT */
/*
 * memory.c - what the text of a settings file cannot tell: whether it and its folder were there before us, and which
 * permissions and writable roots --apply put in, as they could as well be the user's own. One small file each in the
 * configuration folder, where no sandbox can write: --remove believes it. Written before the settings file is
 * changed. Where it is missing, the text alone decides, and permissions and roots stay.
 */
#include "base/file.h"
#include "base/id.h"
#include "base/sys.h"
#include "cli/setup/setup.h"
#include "message/header.h"

#include <fcntl.h>

#define MEMORY_MAX ((size_t)64 << 10)
#define NAME_LEN 32
#define LOCK_WAIT_MS 20000

static enum mr_rc
open_folder(const struct setup *s, bool make, int *ret_fd, struct mr_error *err)
{
	if (!s->config_dir)
		return mr_fail(err, MR_NOTFOUND, "there is no configuration folder");
	return dir_below(s->config_dir, "setup", make, true, ret_fd, err);
}

int
setup_memory_lock(const struct setup *s, enum setup_way way)
{
	mr_auto(sys_close_fd) int dir_fd = -1;
	struct mr_error ignored = { 0 };
	int fd = -1;

	if (open_folder(s, way == SETUP_IN, &dir_fd, &ignored) == MR_OK)
		(void)lock_take(dir_fd, ".lock", 0600, LOCK_WAIT_MS, &fd, &ignored);
	return fd;
}

static void
file_name(const struct setup_file *f, char ret[NAME_LEN + 1])
{
	char hash[65];

	sha256_hex(str_of(f->path), hash);
	memcpy(ret, hash, NAME_LEN);
	ret[NAME_LEN] = '\0';
}

bool
setup_memory_added(const struct setup_file *f, const char *string)
{
	return !f->keep_all && names_has(&f->memory.added, string);
}

static enum mr_rc
take_lines(struct setup_memory *m, const struct record *lines, struct mr_error *err)
{
	static const char *const words[] = { "", "missing", "blank", "there" };

	for (size_t i = 0; i < lines->n; i++) {
		const char *name = lines->lines[i].name, *value = lines->lines[i].value;
		bool fine = true;

		if (ascii_caseeq(name, "Folder"))
			fine = names_add(&m->folders, str_of(value));
		else if (ascii_caseeq(name, "Added"))
			fine = names_add(&m->added, str_of(value));
		for (int w = 1; w < 4 && ascii_caseeq(name, "Was"); w++)
			if (strcmp(value, words[w]) == 0)
				m->was = w;
		if (!fine)
			return mr_nomem(err);
	}
	return MR_OK;
}

/* Whatever is wrong with it: then it is not known. */
enum mr_rc
setup_memory_load(const struct setup *s, struct setup_file *f, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(record_done) struct record lines = { 0 };
	struct mr_error ignored = { 0 };
	char name[NAME_LEN + 1];

	file_name(f, name);
	if (open_folder(s, false, &fd, &ignored) != MR_OK ||
	    file_read(fd, name, MEMORY_MAX, &text, &ignored) != MR_OK ||
	    record_parse(buf_str(&text), &lines, &ignored) != MR_OK)
		return MR_OK;
	f->memory.known = true;
	return take_lines(&f->memory, &lines, err);
}

enum mr_rc
setup_memory_save(const struct setup *s, const struct setup_file *f, struct mr_error *err)
{
	static const char *const words[] = { "unknown", "missing", "blank", "there" };
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	char name[NAME_LEN + 1];
	enum mr_rc rc = header_add(&text, "File", str_of(f->path), err);

	if (rc == MR_OK)
		rc = header_add(&text, "Was", str_of(words[f->memory.was]), err);
	for (size_t i = 0; i < f->memory.folders.n && rc == MR_OK; i++)
		rc = header_add(&text, "Folder", str_of(f->memory.folders.v[i]), err);
	for (size_t i = 0; i < f->memory.added.n && rc == MR_OK; i++)
		rc = header_add(&text, "Added", str_of(f->memory.added.v[i]), err);
	if (rc == MR_OK)
		rc = open_folder(s, true, &fd, err);
	file_name(f, name);
	return rc == MR_OK ? file_replace(fd, name, buf_str(&text), 0600, err) : rc;
}

/* Not one that came meanwhile: an --apply beside us, before there was a folder for the lock, has just added what it
 * says. */
void
setup_memory_drop(const struct setup *s, const struct setup_file *f)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct mr_error ignored = { 0 };
	char name[NAME_LEN + 1];

	file_name(f, name);
	if (f->memory.known && open_folder(s, false, &fd, &ignored) == MR_OK)
		(void)sys_unlink(fd, name);
}
