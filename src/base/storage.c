/* SPDX-License-Identifier: MIT */
/*
 * storage.c - what the file system under a folder guarantees in a power cut. It claims no more than the kernel tells:
 * an unknown kind counts as unsafe.
 */
#include "base/storage.h"

#include "base/error.h"
#include "base/file.h"
#include "base/sys.h"
#include "base/fault.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#ifdef __linux__
#include <sys/vfs.h>
#endif

#define EXT4 0xEF53
#define XFS 0x58465342
#define BTRFS 0x9123683E
#define TMPFS 0x01021994

struct fs_kind {
	uint32_t magic;
	const char *name;
	const char *reason; /* why it is not safe; NULL: it is */
};

static const char network[] = "on a network file system the server decides what survives a power cut";

static const struct fs_kind kinds[] = {
	{ EXT4, "ext4", NULL }, /* if it has a journal; ext2 and ext3 have the same number */
	{ XFS, "xfs", NULL },
	{ BTRFS, "btrfs", NULL },
	{ 0xF2F52010, "f2fs", NULL },
	{ 0xCA451A4E, "bcachefs", NULL },
	{ 0x2FC12FC1, "zfs", NULL },
	{ 0x52654973, "reiserfs", NULL },
	{ 0x3153464A, "jfs", "jfs is not known to keep the order that mailroom needs" },
	{ TMPFS, "tmpfs", "tmpfs is memory: nothing survives a reboot" },
	{ 0x858458F6, "ramfs", "ramfs is memory: nothing survives a reboot" },
	{ 0x794C7630, "overlayfs",
	    "on overlayfs it depends on the file system below, which cannot be seen; "
	    "some containers mount it so that syncs do nothing" },
	{ 0x6969, "nfs", network },
	{ 0xFF534D42, "cifs", network },
	{ 0xFE534D42, "smb2", network },
	{ 0x00C36400, "ceph", network },
	{ 0x01021997, "9p", "9p hands syncs to its host, which may ignore them" },
	{ 0x6A656A63, "virtiofs", "virtiofs hands syncs to its host, which may ignore them" },
	{ 0x65735546, "fuse", "a FUSE file system may ignore syncs" },
	{ 0x4D44, "vfat", "vfat has no journal and no hard links" },
	{ 0x2011BAB0, "exfat", "exfat has no journal and no hard links" },
	{ 0x5346544E, "ntfs", "ntfs is not known to keep the order that mailroom needs" },
};

/* The name of an ext4's device by its number, from /proc/partitions: "major minor blocks name". Its journal is shown as
 * /proc/fs/jbd2/<device>-<inode of the journal>, which is always 8. */
static bool
find_ext4(dev_t dev, char ret[64], bool *ret_journal)
{
	char text[32768], path[128];
	unsigned want_major = major(dev), want_minor = minor(dev), found_major, found_minor;
	char name[64];

	if (sys_kernel_read("/proc/partitions", text, sizeof text) < 0)
		return false;
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "%u %u %*s %63s", &found_major, &found_minor, name) == 3 &&
		    found_major == want_major && found_minor == want_minor) {
			memcpy(ret, name, sizeof name);
			for (char *c = ret; *c; c++)
				*c = *c == '/' ? '!' : *c;
			(void)snprintf(path, sizeof path, "/proc/fs/jbd2/%s-8", ret);
			*ret_journal = sys_kernel_inode(path) != 0;
			return true;
		}
	}
	return false;
}

/* The magic number of its file system; 0: it cannot be read. */
static uint32_t
magic_of(int fd)
{
#ifdef __linux__
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 ? (uint32_t)fs.f_type : 0;
#else
	(void)fd;
	return 0;
#endif
}

enum mr_rc
storage_of(int dir_fd, const char *name, struct mr_storage *ret, struct mr_error *err)
{
	const char *reason = "mailroom does not know this file system";
	struct mr_storage found = { 0 };
	uint32_t magic = magic_of(dir_fd);
	struct stat st;

	if (sys_stat_fd(dir_fd, &st) < 0)
		return mr_fail_errno(err, "cannot look at '%s'", name);
#ifdef __linux__
	if (magic == 0)
		return mr_fail_errno(err, "cannot look at the file system of '%s'", name);
#endif
	(void)snprintf(found.file_system, sizeof found.file_system, "unknown (0x%x)", magic);
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (kinds[i].magic == magic) {
			(void)snprintf(found.file_system, sizeof found.file_system, "%s", kinds[i].name);
			reason = kinds[i].reason;
		}
	char device[64];
	bool journal = false;

	if (magic == EXT4 && !find_ext4(st.st_dev, device, &journal))
		reason = "whether this ext4 has a journal cannot be seen from here";
	else if (magic == EXT4 && !journal)
		reason = "this ext4 has no journal: a power cut can damage folders until fsck has run, and mail "
			 "accepted just before may need it to be found";
	found.power_safe = reason == NULL;
	(void)snprintf(found.reason, sizeof found.reason, "%s", reason ? reason : "");
	*ret = found;
	return MR_OK;
}

enum mr_rc
storage_of_path(const char *path, struct mr_storage *ret, struct mr_error *err)
{
	mr_auto(free_ptr) char *at = strdup(path);
	mr_auto(sys_close_fd) int fd = -1;

	while (at && dir_open(AT_FDCWD, at, &fd, err) == MR_NOTFOUND && strcmp(at, "/") != 0) {
		char *up = path_parent(at);

		free(at);
		at = up;
		*err = (struct mr_error){ 0 };
	}
	TRY(mr_got(at, err));
	return fd >= 0 ? storage_of(fd, path, ret, err) : err->code;
}

#if defined(__linux__) && !defined(MR_PORTABLE)
static bool
kernel_is_5_8(void)
{
	struct utsname kernel;
	char *end;

	if (uname(&kernel) < 0)
		return false;
	long first = strtol(kernel.release, &end, 10), second = *end == '.' ? strtol(end + 1, NULL, 10) : 0;

	return first > 5 || (first == 5 && second >= 8);
}
#endif

bool
storage_syncs_whole(int fd)
{
#if defined(__linux__) && !defined(MR_PORTABLE)
	/* Not network file systems and others that forward syncs: most forward a file's sync and not this one. From 5.8
	 * on it reports write errors to every process that had the file open then. */
	uint32_t magic = magic_of(fd);

	return (magic == EXT4 || magic == XFS || magic == BTRFS || magic == TMPFS) && kernel_is_5_8();
#else
	(void)fd;
	return false;
#endif
}

bool
storage_is_btrfs(int fd)
{
#ifdef MR_PORTABLE
	(void)fd;
	return false;
#else
	return magic_of(fd) == BTRFS;
#endif
}

uint64_t
storage_identity(int fd)
{
	uint64_t id = 0;
#ifndef MR_PORTABLE
	struct statfs fs;

	if (fstatfs(fd, &fs) == 0)
		memcpy(&id, &fs.f_fsid, sizeof(id) < sizeof(fs.f_fsid) ? sizeof(id) : sizeof(fs.f_fsid));
#else
	(void)fd;
#endif
	return id;
}

bool
storage_has_free(int fd, uint64_t bytes, uint64_t inodes)
{
	struct statvfs fs;

	if (fstatvfs(fd, &fs) < 0)
		return false;
	/* No number of inodes: they are made when needed. */
	return (uint64_t)fs.f_bavail * fs.f_frsize >= bytes && (fs.f_files == 0 || fs.f_favail >= inodes);
}

/* ---- The order in which a send is written ---- */

#if defined(__linux__) && !defined(MR_PORTABLE)

/* /proc/fs/ext4/<device>/options has one a line, defaults included. */
static const char *
ext4_doubt(dev_t dev)
{
	char device[64], path[128], options[4096];
	bool journal = false;

	if (!find_ext4(dev, device, &journal))
		return "its device cannot be seen from here";
	if (!journal)
		return "this ext4 has no journal, or has it elsewhere";
	(void)snprintf(path, sizeof path, "/proc/fs/ext4/%s/options", device);
	if (sys_kernel_read(path, options, sizeof options) < 0)
		return "the options of this ext4 cannot be seen from here";
	if (!str_is_among(STR("data=ordered"), options, "\n"))
		return "this ext4 is not mounted with data=ordered";
	if (!str_is_among(STR("barrier"), options, "\n"))
		return "this ext4 is mounted without barriers";
	if (str_is_among(STR("journal_async_commit"), options, "\n") || strstr(options, "dax"))
		return "this ext4 is mounted with journal_async_commit or dax, with which it was not tested";
	if (strstr(options, "fast_commit") || strstr(options, "\nfc_"))
		return "this ext4 uses fast_commit, with which it was not tested";
	return NULL;
}

/* "36 35 98:0 / /mnt rw,noatime shared:1 - xfs /dev/root rw,attr2" */
static const char *
xfs_doubt(dev_t dev)
{
	char device[32], options[512], text[32768];
	const char *found = NULL;

	(void)snprintf(device, sizeof device, " %u:%u ", major(dev), minor(dev));
	if (sys_kernel_read("/proc/self/mountinfo", text, sizeof text) >= 0)
		found = strstr(text, device);
	if (!found || (found = strstr(found, " - xfs ")) == NULL || sscanf(found, " - xfs %*s %511[^\n]", options) != 1)
		return "the options of this xfs cannot be seen from here";
	if (str_is_among(STR("nobarrier"), options, ","))
		return "this xfs is mounted without barriers";
	if (strstr(options, "logdev=") || strstr(options, "rtdev=") || strstr(options, "dax"))
		return "this xfs uses dax, or a second device for its log or data, with which it was not tested";
	return NULL;
}

const char *
storage_order_doubt(int fd)
{
	uint32_t magic = magic_of(fd);
	struct stat st;

	if (sys_break_is_ordered())
		return NULL;
	if (magic == 0 || sys_stat_fd(fd, &st) < 0)
		return "its file system cannot be seen from here";
	if (!kernel_is_5_8())
		return "this kernel is older than 5.8";
	if (magic == EXT4)
		return ext4_doubt(st.st_dev);
	if (magic == XFS)
		return xfs_doubt(st.st_dev);
	return "only ext4 with a journal and xfs are known to keep the order";
}
#else
const char *
storage_order_doubt(int fd)
{
	(void)fd;
	return "only on Linux is the order known";
}
#endif
