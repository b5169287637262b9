/* SPDX-License-Identifier: MIT */
/*
 * notify.c - tells a person about mail for the operator. The command comes from the user's configuration and
 * runs on its own: the send is done whether it works or not. What the mail says reaches it as environment
 * variables, never as shell text.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "cli/cli.h"

static void
set_cleaned(const char *name, const char *value)
{
	mr_auto(buf_done) struct buf clean = BUF_INIT;

	text_clean_line(&clean, str_of(value));
	(void)setenv(name, buf_z(&clean), 1);
}

void
cli_notify(struct cli *cli, const struct mr_receipt *receipt, const char *from, const char *subject)
{
	if (!receipt->notify || !receipt->notify[0])
		return;
	mr_auto(mr_message_done) struct mr_message sent = { 0 };

	/* The draft may have left it to the library: what was sent says it. */
	if (!subject && mr_fetch(cli->room, "operator", receipt->id, &sent, IGNORED) == MR_OK)
		subject = sent.subject;
	pid_t child = fork();

	if (child < 0) {
		cli_warn(cli, "the mail is delivered, but your Notify command could not be started");
		return;
	}
	if (child > 0) {
		(void)waitpid(child, NULL, 0); /* only the short-lived middle process */
		return;
	}
	/* A second fork, so that nobody has to wait for the command and it is nobody's zombie. */
	if (fork() != 0)
		_exit(0);
	int null_fd = sys_open(AT_FDCWD, "/dev/null", O_RDWR, 0);

	(void)setsid();
	for (int fd = 0; fd < 3; fd++) {
		if (null_fd < 0 || dup2(null_fd, fd) < 0)
			(void)sys_close(fd);
	}
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGXFSZ, SIG_DFL);
	set_cleaned("MAILROOM_SUBJECT", subject ? subject : "");
	set_cleaned("MAILROOM_ID", receipt->id);
	set_cleaned("MAILROOM_FROM", from ? from : "");
	(void)execl("/bin/sh", "sh", "-c", receipt->notify, (char *)NULL);
	_exit(127);
}
