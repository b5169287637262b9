/* SPDX-License-Identifier: MIT */
/* names.c - the registry on disk, and who is behind a name, an id and an address. */
#include "rooms/handoff/handoff.h"

#include "base/sys.h"
#include "base/text.h"
#include "message/foreign.h"

#define REGISTRY "registry.json"
#define LOCK ".registry.lock"
#define REGISTRY_MAX ((size_t)4 << 20)
#define LOCK_WAIT_MS 10000

/* ---- What may be an id, and a name ---- */

bool
handoff_id_ok(struct mr_str id)
{
	if (id.len == 0 || id.len > HANDOFF_ID_MAX || id.ptr[0] == '.' || str_eq(id, STR(REGISTRY)))
		return false;
	for (size_t i = 0; i < id.len; i++) {
		char c = id.ptr[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '.' &&
		    c != '_' && c != '-')
			return false;
	}
	return true;
}

enum mr_rc
handoff_id_check(const char *id, struct mr_error *err)
{
	mr_auto(buf_done) struct buf shown = BUF_INIT;

	if (handoff_id_ok(str_of(id)))
		return MR_OK;
	text_clean_line(&shown, utf8_cut(str_of(id), 60));
	return mr_fail(err, MR_REFUSED,
	    "'%s' cannot be the id of a mailbox\n"
	    "an id has 1 to %d of the characters A-Z a-z 0-9 . _ - and does not begin with a dot",
	    buf_z(&shown), HANDOFF_ID_MAX);
}

enum mr_rc
handoff_name_check(struct mr_str name, struct mr_error *err)
{
	mr_auto(buf_done) struct buf shown = BUF_INIT;
	bool fine = name.len > 0 && name.ptr[0] != '-' && !str_eq(name, STR("collision")) && utf8_valid(name);

	for (size_t i = 0; fine && i < name.len; i++) {
		unsigned char c = (unsigned char)name.ptr[i];

		fine = c >= 0x20 && c != 0x7f && c != '"' && c != '\\';
	}
	if (fine)
		return MR_OK;
	text_clean_line(&shown, utf8_cut(name, 60));
	return mr_fail(err, MR_REFUSED,
	    "'%s' cannot be a registered name\nno quote, backslash or control character, no dash in front, not 'collision'",
	    buf_z(&shown));
}

/* ---- On disk ---- */

enum mr_rc
handoff_registry_read(struct handoff *h, struct registry *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	int root_fd = -1;
	enum mr_rc rc = handoff_root(h, false, &root_fd, err);

	if (rc == MR_OK)
		rc = file_read(root_fd, REGISTRY, REGISTRY_MAX, &text, err);
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	return registry_parse(buf_str(&text), ret, err);
}

enum mr_rc
handoff_registry_change(struct handoff *h, registry_edit *edit, void *ctx, struct mr_error *err)
{
	mr_auto(registry_done) struct registry r = { 0 };
	mr_auto(buf_done) struct buf out = BUF_INIT;
	mr_auto(sys_close_fd) int lock = -1;
	int root_fd = -1;

	TRY(handoff_root(h, true, &root_fd, err));
	/* The original locks the same file with flock(1); it is never removed. */
	if (lock_take(root_fd, LOCK, 0600, LOCK_WAIT_MS, &lock, err) != MR_OK) {
		if (err->code == MR_BUSY)
			(void)mr_hint(err, "another process has held %s/%s for 10 s: try again", h->path, LOCK);
		return mr_wrap(err, "cannot change the registry");
	}
	TRY(handoff_registry_read(h, &r, err));
	TRY(edit(ctx, &r, err));
	registry_write(&r, h->path, &out);
	if (!buf_ok(&out))
		return mr_nomem(err);
	return file_replace(root_fd, REGISTRY, buf_str(&out), 0600, err);
}

bool
handoff_has_mailbox(struct handoff *h, const char *id)
{
	struct mr_error ignored = { 0 };
	struct stat st;
	int root_fd = -1;

	return handoff_id_ok(str_of(id)) && handoff_root(h, false, &root_fd, &ignored) == MR_OK &&
	       sys_stat(root_fd, id, &st) == 0 && S_ISDIR(st.st_mode);
}

void
handoff_inbox_path(const struct handoff *h, const char *id, struct buf *out)
{
	buf_addf(out, "%s/%s/inbox", h->path, id);
}

/* ---- Addresses ---- */

enum mr_rc
handoff_mailbox_of(struct handoff *h, const struct registry *r, const char *address, char ret_id[HANDOFF_ID_MAX + 1],
    const struct registry_entry **ret_entry, struct mr_error *err)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;

	foreign_from_address(address, &name);
	if (!buf_ok(&name) && address[0])
		return mr_nomem(err);
	const struct registry_entry *entry = registry_named(r, buf_str(&name));
	const char *id = entry ? entry->id : buf_z(&name);

	if (entry && !handoff_id_ok(str_of(id))) {
		return mr_fail(err, MR_REFUSED,
		    "'%s' is registered with an id that is no folder of this room\n"
		    "somebody wrote that into %s/" REGISTRY "; look at it, and register again",
		    address, h->path);
	}
	if (!entry && !handoff_has_mailbox(h, id))
		return mr_fail(err, MR_NOTFOUND, "no agent '%s' in this room", address);
	(void)snprintf(ret_id, HANDOFF_ID_MAX + 1, "%s", id);
	if (ret_entry)
		*ret_entry = entry;
	return MR_OK;
}

bool
handoff_address_of(const struct registry *r, struct mr_str id, char ret[MR_ADDRESS_MAX + 1])
{
	const struct registry_entry *entry = registry_with_id(r, id);
	struct mr_error ignored = { 0 };

	return (entry && foreign_to_address(str_of(entry->name), ret, &ignored) == MR_OK) ||
	       foreign_to_address(id, ret, &ignored) == MR_OK;
}
