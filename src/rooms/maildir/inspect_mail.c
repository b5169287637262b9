/* SPDX-License-Identifier: MIT */
/* inspect_mail.c - one file in a folder of mail. Only its beginning is read: a power cut on storage that is not safe
 * leaves files without bytes, or with zero bytes where the text was. */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "message/message.h"
#include "rooms/maildir/inspect.h"
#include <fcntl.h>

#define BEGINNING ((size_t)8 << 10)
#define KEYWORDS_MAX ((size_t)64 << 10)

static const char junk_why[] =
    "another program or a hand put it there: every command that looks through the mailbox passes it over, and says so";
static const char torn_why[] =
    "a power cut on storage that is not power safe leaves such files, or a program that wrote "
    "into the folder itself: what it said is lost, its sender may have it in .Sent";

/* It holds no message that anybody could read, and nobody is writing it any more. */
static void
take_torn(struct inspection *in, int dir_fd, const char *name, const struct stat *st, const char *why, const char *what)
{
	const char *path = buf_z(&in->path);
	struct mr_finding torn = { .severity = MR_PROBLEM, .code = "messages", .path = path, .why = why };

	in->mail++;
	if (findings_age_ms(st) < FINDINGS_STRAY_MS || findings_in_use(dir_fd, name)) {
		torn.fix =
		    "it is young: look at it; once it is 36 hours old, mailroom doctor --fix moves it to the attic";
		findings_say(&in->f, &torn, "'%s' %s", path, what);
		return;
	}
	torn.fix = "mailroom doctor --fix moves it to the attic";
	findings_take(&in->f, dir_fd, name, &torn, "'%s' %s", path, what);
}

static ssize_t
read_beginning(int dir_fd, const char *name, char text[BEGINNING])
{
	mr_auto(sys_close_fd) int fd = sys_open(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);

	return fd < 0 ? -1 : sys_read(fd, text, BEGINNING);
}

/* As every command that reads it finds. */
static bool
is_junk(struct mr_str head)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct mr_error ignored = { 0 };

	return message_parse(head, "", MESSAGE_HEADERS, &msg, &ignored) == MR_CORRUPT;
}

static void
check_text(struct inspection *in, int dir_fd, const char *name, const struct stat *st, bool ours)
{
	char text[BEGINNING];
	ssize_t n = read_beginning(dir_fd, name, text);

	if (n <= 0)
		return; /* it moved on, or its mode is told */
	struct mr_str head = { text, (size_t)n };
	const char *nul = memchr(text, '\0', head.len);

	if (nul && !message_headers_complete((struct mr_str){ text, (size_t)(nul - text) })) {
		take_torn(in, dir_fd, name, st, torn_why, "has zero bytes where its header lines should be");
		return;
	}
	if (is_junk(head)) {
		take_torn(in, dir_fd, name, st, junk_why, "is not a message: there is no header line");
		return;
	}
	if (!ours || (size_t)n == sizeof text || message_headers_complete(head))
		return;
	in->mail++;
	findings_say(&in->f,
	    &(struct mr_finding){ .severity = MR_PROBLEM,
		.code = "messages",
		.path = buf_z(&in->path),
		.why = torn_why,
		.fix = "what is left can still be read (mailroom read); ask its sender to send it again" },
	    "'%s' ends within its header lines", buf_z(&in->path));
}

/* ---- Names ---- */

/* "0 $MailroomDone": the letter a. */
uint32_t
inspect_keywords(int box_fd)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_error ignored = { 0 };
	uint32_t letters = 0;

	if (file_read(box_fd, "dovecot-keywords", KEYWORDS_MAX, &text, &ignored) != MR_OK)
		return 0;
	for (const char *line = buf_z(&text); line; line = strchr(line, '\n')) {
		line += *line == '\n';
		size_t digits = strspn(line, "0123456789");
		uint64_t number = 0;

		if (digits > 0 && line[digits] == ' ' && str_to_u64((struct mr_str){ line, digits }, &number) &&
		    number < 26)
			letters |= UINT32_C(1) << number;
	}
	return letters;
}

static void
check_flags(struct inspection *in, const struct file_name *parts)
{
	char unknown[27] = "";
	size_t n = 0;

	for (size_t i = 0; i < parts->flags.len && n + 1 < sizeof unknown; i++) {
		char c = parts->flags.ptr[i];
		bool keyword = c >= 'a' && c <= 'z' && (in->keywords & (UINT32_C(1) << (c - 'a')));

		if (!strchr("DFPRST", c) && !keyword)
			unknown[n++] = c;
	}
	if (n > 0)
		findings_say(&in->f,
		    &(struct mr_finding){ .severity = MR_NOTE,
			.code = "flags",
			.path = buf_z(&in->path),
			.why =
			    "another program set them, or a hand: mailroom keeps letters that it does not know through "
			    "every move",
			.fix = "rename the file if they are wrong; the letters of a Maildir are D F P R S T, and those "
			       "in dovecot-keywords" },
		    "'%s' has flags that nobody explains: '%s'", buf_z(&in->path), unknown);
}

static void
check_time(struct inspection *in, const char *id)
{
	char ahead[24];

	if (id_time_ms(id) <= clock_now_ms() + FINDINGS_FUTURE_MS)
		return;
	duration_text(id_time_ms(id) - clock_now_ms(), ahead);
	findings_say(&in->f,
	    &(struct mr_finding){ .severity = MR_PROBLEM,
		.code = "clock",
		.path = buf_z(&in->path),
		.why =
		    "this machine's clock is behind, or its sender's was ahead; newer mail is listed before it until "
		    "then",
		.fix =
		    "compare the clocks (date -u) of all machines that use this room; the message is kept as it is" },
	    "'%s' is from the future: %s ahead of the clock", buf_z(&in->path), ahead);
}

void
inspect_mail(struct inspection *in, int dir_fd, const char *name, const struct stat *st)
{
	struct file_name parts;

	if (!name_parse(str_of(name), &parts))
		return;
	if (st->st_size == 0)
		take_torn(in, dir_fd, name, st, torn_why, "is empty");
	else
		check_text(in, dir_fd, name, st, parts.ours);
	if (parts.ours)
		check_time(in, parts.id);
	check_flags(in, &parts);
}
