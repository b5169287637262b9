/* SPDX-License-Identifier: MIT */
/* mail_names.c - gt mail group, queue, claim, release, channel, announces, directory: what is written to by a name. */
#include "cli/gt/gt.h"

#define HOUR_MS ((int64_t)3600 * 1000)

/* What a command that changes something says: it was done. */
#define DID(cli, ...) ((cli)->changed = true, fence_addf(&(cli)->out, "✓ " __VA_ARGS__), EXIT_DONE)

/* ---- Groups ---- */

/* name given: that one; else all. */
int
gt_group_list(struct cli *cli)
{
	struct listing list = { .cli = cli, .form = cli->argc > 0 ? LIST_ONE : LIST_KEYED };
	mr_auto(mr_list_done) struct mr_groups all = { 0 };
	mr_auto(mr_group_done) struct mr_group one = { 0 };
	bool named = cli->argc > 0;
	enum mr_rc rc = named ? mr_group_get(cli->room, gt_name(cli, "group", cli->argv[0]), &one, &cli->err)
			      : mr_group_list(cli->room, &all, &cli->err);

	for (size_t i = 0; i < (named ? rc == MR_OK : all.n); i++) {
		const struct mr_group *g = named ? &one : &all.v[i];

		if (list_row(&list, kv_str("Name", g->name), kv_names("Members", &g->members),
			kv_str("CreatedBy", g->created_by[0] ? g->created_by : "unknown"),
			kv_time("CreatedAt", g->created_ms)))
			continue;
		if (!named) {
			fence_addf(&cli->out, "  %s (%zu members)\n", g->name, g->members.n);
			continue;
		}
		fence_addf(&cli->out, "Group: %s\n  ID: hq-group-%s\n  Created by: '%s'\n  Members:\n", g->name,
		    g->name, g->created_by);
		out_names(&cli->out, "    - ", &g->members);
	}
	return gt_list_end(&list, rc, "No groups defined");
}

int
gt_group_create(struct cli *cli, const struct gt_mail_group_create_options *o)
{
	const char *name = gt_name(cli, "group", cli->argv[0]);
	mr_auto(mr_names_done) struct mr_names members = { 0 };
	bool added = true;

	for (int i = 1; i < cli->argc; i++)
		added &= names_add(&members, str_of(gt_recipient(cli, cli->argv[i])));
	for (const char *const *one = o->member; *one; one++)
		added &= names_add(&members, str_of(gt_recipient(cli, *one)));
	TRY_CLI(mr_got(added, &cli->err));
	TRY_CLI(mr_group_create(cli->room, &cli->self, name, names_list(&members), &cli->err));
	return DID(cli, "Created group '%s' with %zu members\n  ID: hq-group-%s\n", name, members.n, name);
}

/* add, remove */
int
gt_group_change(struct cli *cli)
{
	const char *name = gt_name(cli, "group", cli->argv[0]), *member = gt_recipient(cli, cli->argv[1]);
	bool add = strcmp(gt_verb(cli), "add") == 0, changed = false;

	TRY_CLI(mr_group_change(cli->room, name, add, (const char *const[]){ member, NULL }, &changed, &cli->err));
	if (changed)
		return DID(
		    cli, "%s '%s' %s group '%s'\n", add ? "Added" : "Removed", member, add ? "to" : "from", name);
	fence_addf(&cli->out, "✓ '%s' was %s member of group '%s'\n", member, add ? "already a" : "no", name);
	return EXIT_DONE;
}

int
gt_group_delete(struct cli *cli)
{
	const char *name = gt_name(cli, "group", cli->argv[0]);

	TRY_CLI(mr_group_delete(cli->room, name, &cli->err));
	return DID(cli, "Deleted group '%s'\n", name);
}

/* ---- Queues: claim, release ---- */

/* Claims one message and shows it. Without a name: all active queues in order, until one has work for this agent. */
int
gt_claim(struct cli *cli)
{
	const char *named = cli->argc > 0 ? gt_name(cli, "queue", cli->argv[0]) : NULL;
	mr_auto(mr_list_done) struct mr_queues all = { 0 };
	bool eligible = false;

	if (!named)
		TRY_CLI(mr_queue_list(cli->room, &all, &cli->err));
	for (size_t i = 0; i < (named ? 1 : all.n); i++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		mr_auto(buf_done) struct buf text = BUF_INIT;
		const char *queue = named ? named : all.v[i].name;
		struct mr_claim claim = { 0 };
		char id[MR_ID_LEN + 1];

		/* link-NAME is outgoing mail of a link, for `carry`. */
		if (!named && (all.v[i].status != MR_QUEUE_ACTIVE || str_starts(str_of(queue), "link-")))
			continue;
		enum mr_rc rc = mr_queue_recv(cli->room, &cli->self, queue, 0, 0, &claim, &msg, &cli->err);
		bool none = rc == MR_EMPTY || (!named && (rc == MR_BUSY || rc == MR_REFUSED || rc == MR_NOTFOUND));

		eligible |= rc == MR_EMPTY || rc == MR_BUSY;
		if (claim.skipped[0])
			cli_warn(cli, "%s", claim.skipped);
		if (none)
			continue;
		TRY_CLI(rc);
		fence_addf(&cli->out, "✓ Claimed message from queue %s\n", queue);
		gt_text_message(cli, &text, &msg, cli->self.agent);
		out_fenced(cli, &text);
		if (cli_flush(cli))
			return EXIT_DONE;
		/* Nobody saw it. */
		(void)mr_claim_release(
		    cli->room, &cli->self, claim.token, &(struct mr_release){ .unseen = true }, id, IGNORED);
		return EXIT_FAILED;
	}
	if (named)
		fence_addf(&cli->out, "No messages available in queue %s\n", named);
	else
		buf_adds(
		    &cli->out, eligible ? "No messages available to claim\n" : "No queue that you may claim from\n");
	return EXIT_DONE;
}

int
gt_release(struct cli *cli)
{
	char id[MR_ID_LEN + 1];

	TRY_CLI(mr_claim_release(cli->room, &cli->self, cli->argv[0], NULL, id, &cli->err));
	return DID(cli, "Released message %s\n", id);
}

/* ---- Queues: settings ---- */

static void
add_id(struct buf *out, const char *queue)
{
	const char *slash = strrchr(queue, '/');

	buf_addf(out, "%s-q-%s", slash ? "gt" : "hq", slash ? slash + 1 : queue);
}

static void
add_limits(struct buf *out, const struct mr_queue *queue)
{
	buf_addf(out, "  Order: %s\n  Max claims: ", queue->by_priority ? "priority" : "fifo");
	if (queue->max_claims > 0)
		buf_addf(out, "%u\n", queue->max_claims);
	else
		buf_adds(out, "no limit\n");
}

int
gt_queue_create(struct cli *cli, const struct gt_mail_queue_create_options *o)
{
	struct mr_queue settings = { .claimers = o->claimers,
		.max_claims = (unsigned)o->max_claims,
		.by_priority = o->order && strcmp(o->order, "priority") == 0 };
	const char *name = gt_name(cli, "queue", cli->argv[0]);

	if (strlen(name) > MR_ADDRESS_MAX)
		return cli_usage(cli, "the name of a queue has at most %d characters", MR_NAME_MAX);
	(void)snprintf(settings.name, sizeof(settings.name), "%s", name);
	TRY_CLI(mr_queue_create(cli->room, &cli->self, &settings, &cli->err));
	(void)DID(cli, "Created queue %s\n  ID: ", name);
	add_id(&cli->out, name);
	fence_addf(&cli->out, "\n  Claimers: %s\n", settings.claimers);
	add_limits(&cli->out, &settings);
	return EXIT_DONE;
}

int
gt_queue_delete(struct cli *cli)
{
	const char *name = gt_name(cli, "queue", cli->argv[0]);
	size_t dead = 0;

	TRY_CLI(mr_queue_delete(cli->room, name, true, &dead, &cli->err));
	(void)DID(cli, "Deleted queue %s\n", name);
	if (dead > 0)
		buf_addf(&cli->out, "  %zu messages were in it: mailroom dead list\n", dead);
	return EXIT_DONE;
}

int
gt_queue_show(struct cli *cli)
{
	mr_auto(mr_queue_done) struct mr_queue q = { 0 };
	mr_auto(buf_done) struct buf id = BUF_INIT;
	struct mr_queue_counts c = { 0 };
	const char *name = gt_name(cli, "queue", cli->argv[0]);

	TRY_CLI(mr_queue_get(cli->room, name, &q, &cli->err));
	TRY_CLI(mr_queue_count(cli->room, name, &c, &cli->err));
	add_id(&id, q.name);
	if (gt_json(cli, kv_str("id", buf_z(&id)), kv_str("name", q.name), kv_str("claim_pattern", q.claimers),
		kv_str("status", queue_status_word(q.status)), kv_size("available_count", c.ready + c.delayed),
		kv_size("processing_count", c.claimed), kv_size("completed_count", c.done),
		kv_size("failed_count", c.failed), kv_str("created_by", q.created_by),
		kv_time("created_at", q.created_ms), kv_str("processing_order", q.by_priority ? "priority" : "fifo"),
		kv_int("max_claims", q.max_claims)))
		return EXIT_DONE;
	fence_addf(&cli->out, "Queue: %s\n  ID: %s\n  Claimers: '%s'\n  Status: %s\n", q.name, buf_z(&id), q.claimers,
	    queue_status_word(q.status));
	buf_addf(&cli->out, "  Available: %zu\n  Processing: %zu\n  Completed: %zu\n  Failed: %zu\n",
	    c.ready + c.delayed, c.claimed, c.done, c.failed);
	add_limits(&cli->out, &q);
	return EXIT_DONE;
}

int
gt_queue_list(struct cli *cli)
{
	struct listing list = { .cli = cli, .form = LIST_ARRAY };
	mr_auto(mr_list_done) struct mr_queues all = { 0 };
	enum mr_rc rc = mr_queue_list(cli->room, &all, &cli->err);

	for (const struct mr_queue *q = all.v; q < all.v + all.n; q++) {
		mr_auto(buf_done) struct buf id = BUF_INIT;
		const char *status = queue_status_word(q->status);

		add_id(&id, q->name);
		if (!list_row(&list, kv_str("id", buf_z(&id)), kv_str("name", q->name),
			kv_str("claim_pattern", q->claimers), kv_str("status", status)))
			fence_addf(&cli->out, "  %s (%s, claimers '%s')\n", q->name, status, q->claimers);
	}
	return gt_list_end(&list, rc, "No queues defined");
}

/* ---- Channels: the list; gt's announces are channels, too ---- */

static bool
is_announces(const struct cli *cli)
{
	return strcmp(gt_verb(cli), "announces") == 0;
}

/* ---- Channels: the posts of one, newest first ---- */

struct posts {
	struct cli *cli;
	struct mr_names rendered; /* the oldest first, each a piece of text or a JSON object */
};

static bool
take_post(void *ctx, uint64_t number, const struct mr_message *msg)
{
	struct posts *p = ctx;
	struct cli *cli = p->cli;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_str body = gt_text_of(msg);
	struct json j = JSON_INIT(&text);

	(void)number;
	if (cli->json) {
		json_cells(&j, CELLS(kv_open(""), kv_str("id", msg->id), kv_str("title", msg->subject),
				   body.len > 0 ? kv_text(is_announces(cli) ? "description" : "body", body) : kv_none(),
				   kv_str("from", gt_spelled(msg->from)), kv_time("created", msg->date_ms),
				   kv_int("priority", 2 - (int)msg->priority), kv_close()));
	} else {
		gt_text_message(cli, &text, msg, "");
		buf_addc(&text, '\n');
	}
	cli->out.failed |= !buf_ok(&text) || !names_add(&p->rendered, buf_str(&text));
	return !cli->out.failed;
}

static int
show_posts(struct cli *cli)
{
	struct posts p = { .cli = cli };
	mr_auto(buf_done) struct buf all = BUF_INIT;
	const char *name = gt_name(cli, "channel", cli->argv[0]);
	char mark[FENCE_MARK_LEN + 1];
	enum mr_rc rc = mr_channel_read(cli->room, name, 0, true, take_post, &p, &cli->err);
	size_t n = p.rendered.n;

	fence_mark(mark);
	buf_adds(&all, cli->json ? "[" : "");
	for (size_t i = n; i-- > 0;) {
		if (!cli->json && !cli->out_tty) /* no post can pass for two */
			buf_addf(&all, "--- message %s ---\n", mark);
		buf_adds(&all, p.rendered.v[i]);
		buf_adds(&all, cli->json && i > 0 ? "," : "");
	}
	mr_names_done(&p.rendered);
	TRY_CLI(rc);
	if (cli->json) {
		buf_addc(&all, ']');
		gt_json_out(cli, &all);
		return EXIT_DONE;
	}
	fence_addf(&cli->out, "📢 Channel: %s (%zu messages)\n", name, n);
	if (n > 0)
		out_fenced(cli, &all);
	return EXIT_DONE;
}

/* channel, channel list, channel show, announces: the operand makes it one channel. */
int
gt_channel(struct cli *cli)
{
	bool announces = is_announces(cli);
	struct listing list = { .cli = cli, .form = announces ? LIST_ARRAY : LIST_KEYED };
	mr_auto(mr_list_done) struct mr_channels all = { 0 };

	if (cli->argc > 0)
		return show_posts(cli);
	enum mr_rc rc = mr_channel_list(cli->room, &all, &cli->err);

	for (const struct mr_channel *c = all.v; c < all.v + all.n; c++) {
		if (!cli->json)
			fence_addf(&cli->out, "  %s (%zu subscribers%s)\n", c->name, c->subscribers.n,
			    c->closed ? ", closed" : "");
		if (announces)
			list_row(&list, kv_str("name", c->name), kv_names("readers", &c->subscribers),
			    kv_int("retain_count", c->retain_count));
		else
			list_row(&list, kv_str("Name", c->name), kv_names("Subscribers", &c->subscribers),
			    kv_str("Status", c->closed ? "closed" : "active"),
			    kv_int("RetentionCount", c->retain_count), kv_int("RetentionHours", c->retain_ms / HOUR_MS),
			    kv_str("CreatedBy", c->created_by), kv_time("CreatedAt", c->created_ms));
	}
	return gt_list_end(&list, rc, announces ? "No announce channels defined" : "No channels defined");
}

/* ---- Channels: changing ---- */

int
gt_channel_create(struct cli *cli, const struct gt_mail_channel_create_options *o)
{
	const char *name = gt_name(cli, "channel", cli->argv[0]);

	TRY_CLI(mr_channel_create(cli->room, &cli->self, name, o->retain_count, o->retain_hours * HOUR_MS, &cli->err));
	return DID(cli, "Created channel '%s'\n  ID: hq-channel-%s\n", name, name);
}

int
gt_channel_delete(struct cli *cli)
{
	const char *name = gt_name(cli, "channel", cli->argv[0]);

	TRY_CLI(mr_channel_delete(cli->room, name, &cli->err));
	return DID(cli, "Deleted channel '%s'\n", name);
}

int
gt_subscribe(struct cli *cli)
{
	const char *name = gt_name(cli, "channel", cli->argv[0]), *agent = cli->self.agent;
	bool on = strcmp(gt_verb(cli), "subscribe") == 0, changed = false;

	TRY_CLI(mr_channel_subscribe(cli->room, name, agent, on, &changed, &cli->err));
	cli->changed = changed;
	fence_addf(&cli->out, "✓ %s %s %s channel '%s'\n", gt_spelled(agent), changed ? "is now" : "was already",
	    on ? "subscribed to" : "not subscribed to", name);
	return EXIT_DONE;
}

int
gt_subscribers(struct cli *cli)
{
	mr_auto(mr_channel_done) struct mr_channel channel = { 0 };
	mr_auto(mr_names_done) struct mr_names spelled = { 0 };
	mr_auto(buf_done) struct buf text = BUF_INIT;

	TRY_CLI(mr_channel_get(cli->room, gt_name(cli, "channel", cli->argv[0]), &channel, &cli->err));
	for (size_t i = 0; i < channel.subscribers.n; i++)
		cli->out.failed |= !names_add(&spelled, str_of(gt_spelled(channel.subscribers.v[i])));
	json_names(&JSON_INIT(&text), &spelled);
	if (cli->json)
		gt_json_out(cli, &text);
	else if (spelled.n == 0)
		buf_adds(&cli->out, "No subscribers\n");
	else
		out_names(&cli->out, "", &spelled);
	return EXIT_DONE;
}

/* ---- The directory: everything that can be written to ---- */

struct directory {
	struct cli *cli;
	struct mr_names entries, rigs; /* "TYPE\tADDRESS" */
};

static void
directory_done(struct directory *d)
{
	mr_names_done(&d->entries);
	mr_names_done(&d->rigs);
}

static void
add_entry(struct directory *d, const char *type, const char *prefix, const char *name)
{
	mr_auto(buf_done) struct buf entry = BUF_INIT;

	buf_addf(&entry, "%s\t%s%s", type, prefix, name);
	d->cli->out.failed |= entry.failed || !names_add(&d->entries, buf_str(&entry));
}

static void
add_name(void *ctx, enum names_kind kind, const char *name, const char *about)
{
	struct directory *d = ctx;
	const char *spelled = gt_spelled(name);
	struct mr_str rig = gt_rig_of(name);
	char prefix[16];

	if (kind == AGENTS) {
		d->cli->out.failed |= rig.len > 0 && !names_add(&d->rigs, rig);
		add_entry(d, spelled != name ? "well-known" : "agent", "", spelled);
		return;
	}
	text_join(prefix, sizeof prefix, about, ":", NULL);
	add_entry(d, about, prefix, name);
}

int
gt_directory(struct cli *cli)
{
	static const char *const town[] = { "@overseer", "@town", "@witnesses", "@refineries", "@deacons", "@dogs" };
	static const char *const of_rig[] = { "@rig/", "@crew/", "@polecats/" };
	mr_auto(directory_done) struct directory d = { .cli = cli };
	struct listing list = { .cli = cli, .form = LIST_ARRAY };
	enum mr_rc rc = names_each(cli, AGENTS | GROUPS | QUEUES | CHANNELS, add_name, &d);

	for (size_t i = 0; i < sizeof(town) / sizeof(town[0]); i++)
		add_entry(&d, "special", "", town[i]);
	names_sort(&d.rigs);
	for (size_t r = 0; r < d.rigs.n; r++)
		for (size_t i = 0; i < sizeof(of_rig) / sizeof(of_rig[0]); i++)
			if (r == 0 || strcmp(d.rigs.v[r - 1], d.rigs.v[r]) != 0)
				add_entry(&d, "special", of_rig[i], d.rigs.v[r]);
	names_sort(&d.entries);
	for (size_t i = 0; i < d.entries.n && rc == MR_OK; i++) {
		char *type = d.entries.v[i], *address = type + strcspn(type, "\t");

		*address++ = '\0';
		if (!list_row(&list, kv_str("address", address), kv_str("type", type)))
			fence_addf(&cli->out, "%-12s %s\n", type, address);
	}
	return gt_list_end(&list, rc, "");
}
