/* SPDX-License-Identifier: MIT */
/*
 * storage_order.c - does this file system keep the order that one commit needs?
 *
 *	bytes written out - link - sync of the folder
 *
 * is enough where changes of names and lengths go through one journal, in their order, and a commit tells the disk to
 * keep also the bytes that came before: then the sync that makes the name durable makes all of it durable. No standard
 * says so. It is so on ext4 with data=ordered and its journal inside, and on xfs (docs/DURABILITY.md, "Sync: fast", has
 * the power cuts that confirm it). Everything else, and whatever cannot be seen from here, is told as "no".
 */
#include "base/storage.h"
#include "base/sys.h"
#include "base/sys_break.h"

#if defined(__linux__) && !defined(MR_PORTABLE)
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

static bool
has_word(const char *text, const char *separators, const char *word)
{
	size_t len = strlen(word);

	for (text += strspn(text, separators); *text; text += strspn(text, separators)) {
		size_t n = strcspn(text, separators);

		if (n == len && memcmp(text, word, n) == 0)
			return true;
		text += n;
	}
	return false;
}

/* /proc/fs/ext4/<device>/options has one a line, also those that are the default. */
static const char *
ext4_doubt(dev_t dev)
{
	char device[64], path[128], options[4096];

	if (!storage_device_name(dev, device))
		return "its device cannot be seen from here";
	(void)snprintf(path, sizeof path, "/proc/fs/jbd2/%s-8", device);
	if (sys_kernel_inode(path) == 0)
		return "this ext4 has no journal, or has it elsewhere";
	(void)snprintf(path, sizeof path, "/proc/fs/ext4/%s/options", device);
	if (sys_kernel_read(path, options, sizeof options) < 0)
		return "the options of this ext4 cannot be seen from here";
	if (!has_word(options, "\n", "data=ordered"))
		return "this ext4 is not mounted with data=ordered";
	if (!has_word(options, "\n", "barrier"))
		return "this ext4 is mounted without barriers";
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
	if (has_word(options, ",", "nobarrier"))
		return "this xfs is mounted without barriers";
	if (strstr(options, "logdev=") || strstr(options, "rtdev="))
		return "this xfs has its log or data on a device of their own, with which it was not tested";
	return NULL;
}

const char *
storage_order_doubt(int fd)
{
	struct statfs fs;
	struct stat st;

	if (sys_break_is_ordered())
		return NULL;
	if (fstatfs(fd, &fs) < 0 || sys_stat_fd(fd, &st) < 0)
		return "its file system cannot be seen from here";
	if (!storage_kernel_is(5, 8))
		return "this kernel is older than 5.8";
	if ((uint32_t)fs.f_type == 0xEF53)
		return ext4_doubt(st.st_dev);
	if ((uint32_t)fs.f_type == 0x58465342)
		return xfs_doubt(st.st_dev);
	return "only ext4 with a journal and xfs are known to keep the order";
}
#else
const char *
storage_order_doubt(int fd)
{
	(void)fd;
	return "only Linux can do it";
}
#endif
