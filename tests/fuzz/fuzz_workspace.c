/* SPDX-License-Identifier: MIT */
/* Any bytes as a message of a workspace: what parses lies in them and has a safe name; written again and read again it
 * says the same, and written a third time it is the same bytes. */
#include "fuzz.h"

#include "base/text.h"
#include "message/memo.h"

static void
check_written(const struct memo *memo)
{
	mr_auto(buf_done) struct buf once = BUF_INIT, twice = BUF_INIT;
	struct memo back;

	if (memo_value_problem(memo->channel) || memo_value_problem(memo->receiver) ||
	    memo_value_problem(memo->reply) || !utf8_valid(memo->body))
		return;
	memo_write(&once, memo);
	assert(buf_ok(&once) && once.ptr[once.len - 1] == '\n');
	/* A value in quotes within quotes loses them at the next reading. */
	if (memo_parse(buf_str(&once), &back) || back.quoted)
		return;
	assert(str_eq(back.request_id, memo->request_id) && back.is_reply == memo->is_reply);
	assert(str_eq(back.receiver, memo->receiver) && str_eq(back.reply, memo->reply));
	memo_write(&twice, &back);
	assert(str_eq(buf_str(&once), buf_str(&twice)));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_str text = input_of(data, size);
	mr_auto(buf_done) struct buf subject = BUF_INIT;
	struct memo memo;

	if (memo_parse(text, &memo))
		return 0;
	assert(!memo_unfinished(text) && memo_id_safe(memo.request_id));
	assert(lies_within(memo.request_id, text) && lies_within(memo.channel, text) &&
	       lies_within(memo.receiver, text) && lies_within(memo.reply, text) && lies_within(memo.body, text) &&
	       lies_within(memo.head, text));
	memo_subject(&subject, memo.body);
	assert(utf8_valid(buf_str(&subject)) && (subject.len == 0 || !memchr(subject.ptr, '\n', subject.len)));
	check_written(&memo);
	return 0;
}
