-- SPDX-License-Identifier: MIT
-- tables.sql - migration 1: the tables of one room, in a schema of their own.
--
-- Hot tables (inbox, ready, delayed, claim) have only what is under way; what is finished goes to tables that only grow.
-- There are no foreign keys: each would write a row lock into the place's row at every send.
-- Ids are text, so that a person with psql can read them.

CREATE TABLE room (
	one       boolean PRIMARY KEY DEFAULT true CHECK (one),
	format    int NOT NULL,                     -- a newer one is refused by an older mailroom
	name      text NOT NULL,
	instance  uuid NOT NULL DEFAULT gen_random_uuid(),
	settings  text NOT NULL DEFAULT '',         -- header lines, as in .mailroom/room
	lock_class int NOT NULL,                    -- of the advisory locks; written into the functions
	wait_class int NOT NULL,
	created   timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE migration (n int PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), login name NOT NULL DEFAULT session_user);

CREATE TABLE epoch (                            -- one row for each start or promotion of the server, noticed by hello()
	timeline  text NOT NULL, started timestamptz NOT NULL, noticed timestamptz NOT NULL,
	PRIMARY KEY (timeline, started)
);

CREATE TABLE place (                            -- what can be written to; the row of an agent stays for ever
	place     int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	kind      "char" NOT NULL,                  -- a agent, q queue, c channel
	name      text COLLATE "C" NOT NULL,
	here      boolean NOT NULL DEFAULT true,
	life      int NOT NULL DEFAULT 0,           -- newest; numbers survive a removal: the fence
	last      bigint NOT NULL DEFAULT 0,        -- of a channel: highest number that was ever dropped
	role      text NOT NULL DEFAULT '',
	wake      text NOT NULL DEFAULT '',
	created   timestamptz NOT NULL DEFAULT now(),
	UNIQUE (kind, name)
);
-- Not a partial index: without statistics the planner takes one of those for every look at a name.
CREATE UNIQUE INDEX place_case ON place ((CASE WHEN kind = 'a' AND here THEN lower(name) END));

CREATE TABLE life (
	place     int NOT NULL,
	life      int NOT NULL,
	started   timestamptz NOT NULL,
	seen      timestamptz NOT NULL,             -- written at most once a minute
	worktree  text NOT NULL, session text NOT NULL, host text NOT NULL,
	pid       bigint NOT NULL, pid_start bigint NOT NULL, pid_ns bigint NOT NULL, boot text NOT NULL,
	login     name NOT NULL DEFAULT session_user,
	PRIMARY KEY (place, life)
) WITH (fillfactor = 70);

CREATE TABLE message (                          -- each once, never changed
	id        text COLLATE "C" PRIMARY KEY,
	head      bytea NOT NULL,                   -- header block with its empty line: all that a listing needs
	body      bytea NOT NULL,                   -- head || body are the RFC 5322 bytes
	digest    text COLLATE "C" NOT NULL,        -- of the content: tells our own retry from a collision
	sender    int,                              -- place of the agent that keeps it as sent mail; NULL: nobody
	prio      smallint NOT NULL,                -- 0 urgent .. 3 low
	look      boolean NOT NULL,                 -- only the text says where in a list it belongs
	thread    text COLLATE "C" NOT NULL,
	reply_to  text COLLATE "C" NOT NULL,
	login     name NOT NULL DEFAULT session_user,
	at        timestamptz NOT NULL
);
ALTER TABLE message ALTER head SET STORAGE MAIN;
CREATE INDEX message_tail ON message ("right"(id, 6));        -- ids are typed by their last 6 characters
CREATE INDEX message_sent ON message (sender, id);             -- sent mail is no copy, but an index
CREATE INDEX message_thread ON message (thread);
CREATE INDEX message_reply ON message (reply_to) WHERE reply_to <> '';

CREATE TABLE inbox (                            -- unread, held, and the newest of what was read
	place     int NOT NULL,
	id        text COLLATE "C" NOT NULL,
	flags     smallint NOT NULL DEFAULT 0,
	attempt   smallint NOT NULL DEFAULT 0,
	prio      smallint NOT NULL, look boolean NOT NULL, -- as the message has them: lists are made without it
	released  timestamptz,
	kind      "char",                           -- NULL not held; p by a session, which has the lock of the token; l by a lease
	token     text COLLATE "C",                 -- of this hold or the last one: a settle that is repeated finds itself
	life      int, since timestamptz,
	deadline  timestamptz,                      -- p: only after a restart, until when the lock may be missing
	session   text, host text, pid bigint, pid_start bigint, pid_ns bigint, boot text,
	PRIMARY KEY (place, id)                     -- the only index: marks and holds are HOT updates
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE archive (
	place     int NOT NULL, id text COLLATE "C" NOT NULL,
	flags     smallint NOT NULL, attempt smallint NOT NULL, prio smallint NOT NULL, look boolean NOT NULL,
	token     text COLLATE "C",                 -- of the hold that ended here, or NULL
	PRIMARY KEY (place, id)
);
CREATE TABLE dead (
	n         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id        text COLLATE "C" NOT NULL,
	whose     text NOT NULL,                    -- agent or "queue:NAME" it was for
	flags     smallint NOT NULL, attempt smallint NOT NULL, prio smallint NOT NULL, look boolean NOT NULL DEFAULT false,
	at        timestamptz NOT NULL
);
CREATE INDEX dead_id ON dead (id);

CREATE TABLE ready (
	queue     int NOT NULL,
	n         bigint GENERATED BY DEFAULT AS IDENTITY, -- order of arrival at the database: senders' clocks do not count
	id        text COLLATE "C" NOT NULL,
	prio      smallint NOT NULL,
	attempt   smallint NOT NULL DEFAULT 0,
	released  timestamptz, released_by text COLLATE "C", -- by its holder; that one gets it only when nothing else is there
	only_for  text COLLATE "C", only_until timestamptz,
	PRIMARY KEY (queue, n)                      -- first in, first out
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX ready_prio ON ready (queue, prio, n);
CREATE INDEX ready_id ON ready (id);
CREATE TABLE delayed (
	queue     int NOT NULL, n bigint NOT NULL, id text COLLATE "C" NOT NULL,
	prio      smallint NOT NULL,
	not_before timestamptz NOT NULL,
	PRIMARY KEY (id, queue)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX delayed_when ON delayed (queue, not_before);
CREATE TABLE claim (
	token     text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL,
	queue     int NOT NULL, n bigint NOT NULL,
	prio      smallint NOT NULL, attempt smallint NOT NULL,
	agent     text COLLATE "C" NOT NULL, kind "char" NOT NULL, life int NOT NULL,
	since     timestamptz NOT NULL, deadline timestamptz,
	session   text, host text, pid bigint, pid_start bigint, pid_ns bigint, boot text,
	PRIMARY KEY (token, id, queue)              -- a session's claims share its token
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX claim_queue ON claim (queue);
CREATE INDEX claim_id ON claim (id);
CREATE TABLE finished (
	queue     int NOT NULL, id text COLLATE "C" NOT NULL,
	failed    boolean NOT NULL, prio smallint NOT NULL, attempt smallint NOT NULL,
	agent     text COLLATE "C" NOT NULL, at timestamptz NOT NULL,
	PRIMARY KEY (id, queue)
);
CREATE INDEX finished_queue ON finished (queue, id);
CREATE TABLE low (                              -- where claims begin to look: what lies below was gone 5 s ago
	queue     int NOT NULL, prio smallint NOT NULL, -- prio -1: first in, first out
	low       bigint NOT NULL, next bigint NOT NULL, at timestamptz NOT NULL, round int NOT NULL DEFAULT 1,
	PRIMARY KEY (queue, prio)
) WITH (fillfactor = 10);

CREATE TABLE past (                             -- leases that are over, for `why`
	id        text COLLATE "C" NOT NULL,
	box       text COLLATE "C" NOT NULL,        -- agent or "queue:NAME"
	token     text COLLATE "C" NOT NULL, attempt smallint NOT NULL,
	agent     text NOT NULL, life int NOT NULL, since timestamptz, ended timestamptz NOT NULL,
	how       "char" NOT NULL,                  -- b back, l later, d done, f failed
	reason    text, only_for text, only_until timestamptz
);
CREATE INDEX past_id ON past (id);
CREATE INDEX past_token ON past (token);
CREATE INDEX past_ended ON past USING brin (ended);

CREATE TABLE post (
	channel   int NOT NULL, n bigint NOT NULL,  -- max(n) + 1 under the channel's lock: no row that every post rewrites
	id        text COLLATE "C",                 -- NULL: purged, the number stays taken
	at        timestamptz NOT NULL,
	PRIMARY KEY (channel, n)
);
CREATE INDEX post_id ON post (id);

CREATE TABLE sendkey (
	sender    text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL,
	id        text COLLATE "C" NOT NULL, digest text COLLATE "C" NOT NULL, at timestamptz NOT NULL,
	PRIMARY KEY (sender, key)
);
CREATE INDEX sendkey_at ON sendkey (at);

CREATE TABLE record (
	kind      text COLLATE "C" NOT NULL, owner text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL,
	text      bytea NOT NULL, at timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (kind, owner, name)
) WITH (fillfactor = 80);

-- For the owner with psql: what `cat` is in a folder.
CREATE VIEW mail AS
	SELECT p.name AS agent, x.folder, x.id, s.name AS sender, m.at, convert_from(m.head, 'UTF8') AS head
	FROM (SELECT place, id, CASE WHEN kind IS NULL THEN 'inbox' ELSE 'held' END AS folder FROM inbox
	      UNION ALL SELECT place, id, 'archive' FROM archive) x
	JOIN place p ON p.place = x.place JOIN message m ON m.id = x.id LEFT JOIN place s ON s.place = m.sender;
