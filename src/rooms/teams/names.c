/* SPDX-License-Identifier: MIT */
/* names.c - names of teams and agents as names of files, as the original spells them: lossy, in two ways. */
#include "base/error.h"
#include "base/text.h"
#include "message/foreign.h"
#include "rooms/teams/teams.h"
#include "base/sys.h"
#include <fcntl.h>

static bool
is_alnum(uint32_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

void
teams_sanitise(struct buf *out, struct mr_str raw, enum sanitise how)
{
	while (raw.len > 0) {
		uint32_t c = 0xfffd;
		size_t n = utf8_next(raw, &c);
		bool kept = is_alnum(c) || (how == SANITISE_INBOX && (c == '_' || c == '-'));

		if (kept)
			buf_addc(out, (char)(how == SANITISE_CONFIG && c >= 'A' && c <= 'Z' ? c + 32 : c));
		else
			buf_adds(out, c > 0xffff ? "--" : "-"); /* the original counts UTF-16 units */
		n = n > 0 ? n : 1;
		raw = (struct mr_str){ raw.ptr + n, raw.len - n };
	}
}

void
teams_inbox_name(const char *agent, char ret[TEAM_NAME_LEN])
{
	mr_auto(buf_done) struct buf raw = BUF_INIT, name = BUF_INIT;

	foreign_from_address(agent, &raw);
	teams_sanitise(&name, buf_str(&raw), SANITISE_INBOX);
	(void)snprintf(ret, TEAM_NAME_LEN, "%.180s.json", buf_z(&name));
}

bool
teams_is_inbox(const char *file, struct mr_str *ret_stem)
{
	struct mr_str name = str_of(file);

	if (name.len <= 5 || name.len > 185 || !str_ends(name, ".json"))
		return false;
	name.len -= 5;
	for (size_t i = 0; i < name.len; i++)
		if (!is_alnum((unsigned char)name.ptr[i]) && name.ptr[i] != '_' && name.ptr[i] != '-')
			return false;
	*ret_stem = name;
	return true;
}

bool
teams_is_leftover(const char *file)
{
	return strstr(file, ".json.tmp.") || strstr(file, ".json.lock.stale.") ||
	       str_starts(str_of(file), FILE_CARRY) || str_starts(str_of(file), FILE_VOID);
}

void
teams_attribute(struct buf *out, struct mr_str value)
{
	for (size_t i = 0; i < value.len; i++) {
		char c = value.ptr[i];

		if (c == '\n' || c == '\r')
			buf_addc(out, ' ');
		else if (c == '"')
			buf_addc(out, '\'');
		else if (c == '<' || c == '>')
			buf_adds(out, c == '<' ? "\u2039" : "\u203a");
		else
			buf_addc(out, c);
	}
}

static void
inboxes_path(const struct teams *t, struct buf *path)
{
	buf_addf(path, "%s/%s", t->root, t->inboxes);
}

/* The root may be reached through links: that is the user's affair. Below it nothing is followed. */
enum mr_rc
teams_open_inboxes(const struct teams *t, int *ret_fd, struct mr_error *err)
{
	mr_auto(sys_close_fd) int root_fd = -1;

	TRY(dir_open(AT_FDCWD, t->root, &root_fd, err));
	return dir_open(root_fd, t->inboxes, ret_fd, err);
}

/* Its members or its inboxes: the program makes the members first, and a room of ours may have none. */
enum mr_rc
teams_exists(const struct teams *t, struct mr_error *err)
{
	mr_auto(sys_close_fd) int root_fd = -1, fd = -1;
	enum mr_rc rc = dir_open(AT_FDCWD, t->root, &root_fd, err);

	if (rc == MR_OK)
		rc = dir_open(root_fd, t->inboxes, &fd, err);
	if (rc == MR_NOTFOUND && root_fd >= 0) {
		*err = (struct mr_error){ 0 };
		rc = dir_open(root_fd, t->config_dir, &fd, err);
	}
	return rc == MR_NOTFOUND ? mr_fail(err, MR_NOTFOUND, "there is no team '%s' in '%s'", t->team, t->root) : rc;
}

enum mr_rc
teams_make_inboxes(const struct teams *t, int *ret_fd, struct mr_error *err)
{
	mr_auto(sys_close_fd) int root_fd = -1;
	mr_auto(buf_done) struct buf path = BUF_INIT;

	if (dir_make(AT_FDCWD, t->root, 0700, true, &root_fd, err) == MR_OK &&
	    dir_make(root_fd, t->inboxes, 0700, true, ret_fd, err) == MR_OK)
		return MR_OK;
	inboxes_path(t, &path);
	return mr_wrap(err, "cannot make '%s'", buf_z(&path));
}
