-- SPDX-License-Identifier: MIT
-- functions.sql - one function for each slot of the driver: one statement, one transaction, one round trip. Replaced as a
-- whole by init and init --upgrade. @S@ is the schema, @C@ and @W@ the classes of all advisory locks of this room, @G@ is true in
-- a guarded room.
--
-- Rules of this file
-- * READ COMMITTED; a client never holds a transaction open.
-- * An expected outcome is a row with rc, no exception: 0 done, 1 empty, 2 not found, 3 refused, 5 exists, 6 busy.
-- * Time is clock(): the database's. wall() is the same for "not before"; tests shift that one.
-- * PL/pgSQL, or SQL that is inlined: any other function in SQL is parsed anew in every transaction.
-- * Locks, in this order: (@C@, 0) shared by all that writes to places, exclusive by what takes a place away;
--   (@C@, place) of an agent: shared by holds and claims, exclusive by life_take; of a channel: exclusive by a post;
--   (@C@, -place) of a queue: exclusive by a claim with a limit; (@W@, place): held shared by each session that waits;
--   bigint keys: token_lock(token), record_key(...), held by sessions; of chunk() before all of these, until the commit.
-- * A guarded room has logins that act for some agents only. Every function that is granted (the list is at the end) calls guard()
--   for the agent it acts for, or leaves out what may() denies. Row-level security would need a right on the tables for every login.

DO $$
DECLARE
	f regprocedure;
BEGIN
	FOR f IN SELECT oid FROM pg_proc WHERE pronamespace = '@S@'::regnamespace LOOP EXECUTE 'DROP FUNCTION ' || f || ' CASCADE'; END LOOP;
END $$;
DROP TYPE IF EXISTS letter, held;

CREATE FUNCTION clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()';
CREATE FUNCTION wall() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()';
CREATE FUNCTION ms(t timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT (extract(epoch FROM t) * 1000)::bigint';
CREATE FUNCTION at_ms(t bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS 'SELECT to_timestamp(t / 1000.0)';
-- Of a message. Where the body is in chunks, the row has its outline in the place of it (content.c).
CREATE FUNCTION size_of(head bytea, body bytea, content bigint) RETURNS int LANGUAGE sql IMMUTABLE AS
	'SELECT octet_length(head) + CASE WHEN content > 0 THEN least(content, 1073741824)::int ELSE octet_length(body) END';
CREATE FUNCTION token_lock(t text) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT hashtextextended(t, @C@)';
CREATE FUNCTION record_key(k text, o text, n text) RETURNS bigint LANGUAGE sql IMMUTABLE AS
	$$ SELECT hashtextextended(k || chr(10) || o || chr(10) || n, @C@) $$;
CREATE FUNCTION timeline() RETURNS text LANGUAGE sql AS 'SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)';

-- Does any session have that lock, our own included? (pg_try_advisory_lock would get our own once more.)
CREATE FUNCTION is_locked(k bigint) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
	RETURN EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
	    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
	    AND classid::bigint = ((k >> 32) & 4294967295) AND objid::bigint = (k & 4294967295));
END $$;

-- A hold is over when its time is up by the database's clock, or the session that had it is gone. Whether a harness
-- still lives only its own machine can tell: the driver asks that for what is over here.
CREATE FUNCTION is_over(kind "char", token text, deadline timestamptz) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
	IF kind = 'l' THEN RETURN deadline <= clock(); END IF;
	RETURN (deadline IS NULL OR deadline <= clock()) AND NOT is_locked(token_lock(token));
END $$;

-- Accepted is durable: a session, role or database that lowered it is overruled for this transaction. A SET clause of
-- the function would be undone before the commit, set_config is not.
CREATE FUNCTION durable() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('synchronous_commit') IN ('off', 'local') THEN PERFORM set_config('synchronous_commit', 'on', true); END IF;
END $$;

-- What was found is known to be on the standby only once something written after it is: a commit that wrote nothing
-- would not wait. (After a crash of the primary, or a cancelled wait, rows are visible that no standby has.)
CREATE FUNCTION settled() RETURNS int LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
BEGIN
	PERFORM durable(), pg_logical_emit_message(true, 'mailroom', '');
	RETURN 0;
END $$;

-- Does this login act for that agent? '' and a box ("queue:NAME") are the owners' alone. session_user is the login that the server
-- checked: SET ROLE and SECURITY DEFINER do not change it.
CREATE FUNCTION may(p_agent text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
	IF NOT @G@ THEN RETURN true; END IF;
	RETURN EXISTS (SELECT 1 FROM actor a WHERE a.login = session_user AND (a.agent = '*' OR a.agent = p_agent
	    OR ("right"(a.agent, 2) = '/*' AND starts_with(p_agent, "left"(a.agent, -1)))));
END $$;
CREATE FUNCTION guard(p_agent text) RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
	IF may(p_agent) THEN RETURN; END IF;
	RAISE insufficient_privilege USING MESSAGE = CASE WHEN p_agent = '' THEN format('login ''%s'' is not an owner of this room', session_user)
	    ELSE format('login ''%s'' does not act for ''%s''', session_user, p_agent) END;
END $$;
-- The settings of a queue, a channel or a group are changed by the login that made it, and by owners.
CREATE FUNCTION guard_box(p_kind text, p_name text) RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
	IF @G@ AND NOT EXISTS (SELECT 1 FROM record r WHERE r.kind = p_kind AND r.owner = '' AND r.name = p_name AND r.login = session_user) THEN
		PERFORM guard('');
	END IF;
END $$;
-- A field of such settings.
CREATE FUNCTION setting(p_kind text, p_name text, p_field text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN (SELECT substring(convert_from(r.text, 'UTF8') FROM '(?n)^' || p_field || ': *(.*)$') FROM record r
	    WHERE r.kind = p_kind AND r.owner = '' AND r.name = p_name);
END $$;

CREATE FUNCTION agent_place(p_name text) RETURNS int LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN (SELECT place FROM place WHERE kind = 'a' AND name = p_name AND here);
END $$;

-- What retain() has to look at: shelves with a setting that is older than a day, once an hour, or at once while there is more; and once a
-- day 'rows', which nobody will ask for any more.
CREATE FUNCTION shelves_due() RETURNS TABLE (shelf text, setting text, value text) LANGUAGE sql STABLE AS $$
	SELECT lower(substr(s.name, 6)), s.name, btrim(convert_from(s.text, 'UTF8')) FROM record s
	WHERE s.kind = 'setting' AND s.owner = '' AND s.name IN ('Keep-Archive', 'Keep-Sent', 'Keep-Done', 'Keep-Dead') AND s.at < clock_timestamp() - interval '1 day'
	    AND NOT EXISTS (SELECT 1 FROM record k WHERE k.kind = 'kept' AND k.owner = '' AND k.name = 'look-' || lower(substr(s.name, 6))
	        AND k.at > clock_timestamp() - interval '1 hour' AND k.text <> 'more')
	UNION ALL SELECT 'rows', '', '' WHERE NOT EXISTS (SELECT 1 FROM record k WHERE k.kind = 'kept' AND k.owner = '' AND k.name = 'look-rows'
	    AND k.at > clock_timestamp() - interval '1 day' AND k.text <> 'more')
$$;

-- ---------------------------------------------------------------- opening

-- All that a command asks first. p_backend is the number that the server gave at the connect: another one here means a
-- pool, whose sessions are not ours to hold anything with. The driver reads the columns by their names, so that a later
-- version may add some.
CREATE FUNCTION hello(p_backend int, OUT format int, OUT migration int, OUT name text, OUT settings text, OUT instance text,
    OUT timeline text, OUT now_ms bigint, OUT version text, OUT fsync text, OUT pages text, OUT commits text, OUT standbys text, OUT wanted text, OUT pooled boolean,
    OUT small text, OUT guarded boolean, OUT acts text, OUT written bigint, OUT system text, OUT look_due boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
#variable_conflict use_column
BEGIN
	guarded := @G@;
	SELECT string_agg(a.agent, ', ' ORDER BY a.agent) INTO acts FROM actor a WHERE a.login = session_user;
	SELECT r.format, r.name, r.settings, replace(r.instance::text, '-', '') INTO format, name, settings, instance FROM room r;
	settings := settings || coalesce((SELECT string_agg(k.name || ': ' || convert_from(k.text, 'UTF8') || chr(10), '' ORDER BY k.name)
	    FROM record k WHERE k.kind = 'setting' AND k.owner = ''), '');
	SELECT max(m.n) INTO migration FROM migration m;
	look_due := EXISTS (SELECT 1 FROM shelves_due());
	pooled := p_backend <> pg_backend_pid();
	IF NOT pooled THEN -- a client that is cut off must not hold for two hours what ends with its session
		PERFORM set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false),
		    set_config('tcp_keepalives_count', '3', false), set_config('tcp_user_timeout', '25s', false),
		    set_config('lock_timeout', '10s', false), set_config('idle_in_transaction_session_timeout', '30s', false);
	END IF;
	timeline := timeline();
	written := pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint;
	system := (SELECT s.system_identifier || '/' || d.oid FROM pg_control_system() s, pg_database d WHERE d.datname = current_database());
	now_ms := ms(clock());
	version := current_setting('server_version');
	fsync := current_setting('fsync');
	pages := current_setting('full_page_writes');
	commits := current_setting('synchronous_commit');
	wanted := current_setting('synchronous_standby_names');
	IF wanted <> '' THEN
		SELECT string_agg(s.application_name || ' (' || s.sync_state || ')', ', ' ORDER BY s.application_name) INTO standbys
		    FROM pg_stat_replication s WHERE s.sync_state IN ('sync', 'quorum');
		IF standbys IS NULL AND NOT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') THEN standbys := '?'; END IF; -- not ours to see
	END IF;
	small := small_records('');
	IF NOT EXISTS (SELECT 1 FROM epoch e WHERE e.timeline = hello.timeline AND e.started = pg_postmaster_start_time()) THEN
		PERFORM new_epoch(timeline, pg_postmaster_start_time());
	END IF;
END $$;

-- The records that nearly every command asks for, of the room or of an agent, as lines "kind name", with the text in hexadecimal
-- behind it where it is wanted and short. NULL: too many of them.
CREATE FUNCTION small_records(p_owner text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN (SELECT CASE WHEN count(*) <= 500 THEN coalesce(string_agg(x.kind || ' ' || x.name || CASE WHEN x.kind IN ('queue', 'wakes', 'announced', 'announced-log', 'dnd')
	            AND length(x.text) BETWEEN 1 AND 1000 THEN ' ' || encode(x.text, 'hex') ELSE '' END, chr(10) ORDER BY x.kind, x.name), '') END FROM
	    (SELECT r.kind, r.name, r.text FROM record r WHERE r.owner = p_owner AND r.kind = ANY
	        (CASE WHEN p_owner = '' THEN '{group,queue,channel,link,type,wakes}' ELSE '{due,nudge,announced,announced-log,dnd}' END::text[]) LIMIT 501) x);
END $$;

-- The server was restarted or another one promoted: session locks are gone although their holders may live, and nobody
-- could extend a lease meanwhile. All get a minute.
CREATE FUNCTION new_epoch(p_timeline text, p_started timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
BEGIN
	PERFORM set_config('synchronous_commit', 'local', true); -- looking must work while no standby is there
	INSERT INTO epoch VALUES (p_timeline, p_started, clock()) ON CONFLICT DO NOTHING;
	IF NOT FOUND THEN RETURN; END IF;
	UPDATE inbox SET deadline = greatest(deadline, clock() + interval '1 minute') WHERE kind IS NOT NULL;
	UPDATE claim SET deadline = greatest(deadline, clock() + interval '1 minute');
END $$;

-- ---------------------------------------------------------------- who lives here

CREATE FUNCTION agents(p_name text) RETURNS TABLE (name text, life int, created_ms bigint, started_ms bigint,
    seen_ms bigint, worktree text, session text, host text, role text, wake text, pid bigint, pid_start bigint,
    pid_ns bigint, boot text, others boolean, door int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY SELECT p.name, p.life, ms(p.created), coalesce(ms(l.started), 0), coalesce(ms(l.seen), 0),
	    coalesce(l.worktree, ''), CASE WHEN may(p.name) THEN coalesce(l.session, '') ELSE '' END, coalesce(l.host, ''), p.role, p.wake, coalesce(l.pid, 0),
	    coalesce(l.pid_start, 0), coalesce(l.pid_ns, 0), coalesce(l.boot, ''), NOT may(p.name), coalesce(l.door, 0)
	FROM place p LEFT JOIN life l ON l.place = p.place AND l.life = p.life
	WHERE p.kind = 'a' AND p.here AND (p_name IS NULL OR p.name = p_name) ORDER BY p.name;
END $$;

CREATE FUNCTION agent_add(p_name text, p_role text, p_wake text, p_created_ms bigint, p_again boolean, OUT rc int, OUT note text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
DECLARE
	v_other place;
BEGIN
	PERFORM durable(), guard(p_name);
	SELECT * INTO v_other FROM place WHERE CASE WHEN kind = 'a' AND here THEN lower(name) END = lower(p_name);
	IF FOUND THEN
		note := v_other.name;
		rc := CASE WHEN p_again AND note = p_name AND v_other.role = p_role AND ms(v_other.created) = p_created_ms THEN 0
		    WHEN note = p_name THEN 5 ELSE 3 END;
		RETURN;
	END IF;
	INSERT INTO place (kind, name, role, wake, created) VALUES ('a', p_name, p_role, p_wake, at_ms(p_created_ms))
	ON CONFLICT (kind, name) DO UPDATE SET here = true, role = excluded.role, wake = excluded.wake,
	    created = excluded.created WHERE NOT place.here;
	rc := CASE WHEN FOUND THEN 0 ELSE 5 END;
EXCEPTION WHEN unique_violation THEN -- another spelling of it at the same moment
	rc := 3; note := lower(p_name);
END $$;

-- Numbers only grow. What the life before held comes back in the same transaction; a hold of it that is under way
-- waits for our lock, or we for its.
CREATE FUNCTION life_take(p_name text, p_life int, p_started_ms bigint, p_worktree text, p_session text, p_host text,
    p_pid bigint, p_start bigint, p_ns bigint, p_boot text, p_again boolean, OUT rc int, OUT returned int, OUT newest int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
DECLARE
	v_place int := agent_place(p_name);
BEGIN
	PERFORM durable(), guard(p_name);
	returned := 0;
	IF v_place IS NULL THEN rc := 2; RETURN; END IF;
	PERFORM pg_advisory_xact_lock(@C@, v_place);
	UPDATE place SET life = p_life WHERE place = v_place AND life < p_life AND here;
	IF NOT FOUND THEN
		SELECT p.life INTO newest FROM place p WHERE p.place = v_place;
		rc := CASE WHEN p_again AND newest = p_life AND EXISTS (SELECT 1 FROM life l WHERE l.place = v_place AND l.life = p_life
		    AND l.session = p_session AND l.host = p_host AND l.pid = p_pid AND l.pid_start = p_start) THEN 0 ELSE 5 END;
		RETURN;
	END IF;
	INSERT INTO life (place, life, started, seen, worktree, session, host, pid, pid_start, pid_ns, boot)
	    VALUES (v_place, p_life, CASE WHEN p_started_ms > 0 THEN at_ms(p_started_ms) ELSE clock() END,
	    clock(), p_worktree, p_session, p_host, p_pid, p_start, p_ns, p_boot);
	returned := give_back(v_place, p_name, NULL);
	rc := 0;
END $$;

-- Held mail of an agent goes back to its inbox: all of it, or that with these ids. A lease leaves its past.
CREATE FUNCTION give_back(p_place int, p_name text, p_ids text[]) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
DECLARE
	v_n int;
BEGIN
	WITH held AS (SELECT * FROM inbox WHERE place = p_place AND kind IS NOT NULL AND (p_ids IS NULL OR id = ANY (p_ids)) FOR UPDATE),
	told AS (INSERT INTO past (id, box, token, attempt, agent, life, since, ended, how)
	    SELECT id, p_name, token, attempt + 1, p_name, life, since, clock(), 'b' FROM held WHERE kind = 'l'),
	back AS (UPDATE inbox i SET token = NULL, kind = NULL, deadline = NULL, attempt = i.attempt + 1
	    FROM held WHERE i.place = p_place AND i.id = held.id RETURNING 1)
	SELECT count(*) INTO v_n FROM back;
	RETURN v_n;
END $$;

-- p_life 0: only the role.
CREATE FUNCTION agent_update(p_name text, p_life int, p_role text, p_worktree text, p_session text, p_host text, p_pid bigint,
    p_start bigint, p_ns bigint, p_boot text, OUT rc int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
BEGIN
	PERFORM durable(), guard(p_name);
	IF p_life = 0 THEN
		UPDATE place SET role = p_role WHERE place = agent_place(p_name);
	ELSE
		UPDATE life SET seen = clock(), worktree = p_worktree, session = p_session, host = p_host, pid = p_pid,
		    pid_start = p_start, pid_ns = p_ns, boot = p_boot WHERE place = agent_place(p_name) AND life = p_life;
	END IF;
	rc := CASE WHEN FOUND THEN 0 ELSE 2 END;
END $$;

-- The newest life and its session; with them the agent's small records.
CREATE FUNCTION life_newest(p_name text) RETURNS TABLE (life int, session text, small text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY SELECT p.life, CASE WHEN may(p_name) THEN l.session END, CASE WHEN may(p_name) THEN small_records(p_name) END FROM place p LEFT JOIN life l ON l.place = p.place AND l.life = p.life
	    WHERE p.kind = 'a' AND p.name = p_name AND p.here;
END $$;

CREATE FUNCTION life_seen(p_name text, p_life int, p_door int) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
BEGIN -- best effort: not worth a wait for the disk
	UPDATE life SET seen = clock(), door = p_door WHERE place = agent_place(p_name) AND life = p_life
	    AND (seen < clock() - interval '1 minute' OR door = 0) AND may(p_name);
	PERFORM set_config('synchronous_commit', 'off', true);
	RETURN FOUND;
END $$;

CREATE FUNCTION agent_remove(p_name text, p_again boolean, OUT rc int, OUT gone int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
DECLARE
	v_place int;
BEGIN
	PERFORM durable(), guard(p_name);
	gone := 0;
	PERFORM pg_advisory_xact_lock(@C@, 0); -- nothing is written to it while its mail is moved
	UPDATE place SET here = false WHERE kind = 'a' AND name = p_name AND here RETURNING place INTO v_place;
	IF v_place IS NULL THEN rc := CASE WHEN p_again THEN 0 ELSE 2 END; RETURN; END IF;
	PERFORM pg_advisory_xact_lock(@C@, v_place), give_back(v_place, p_name, NULL);
	WITH m AS (DELETE FROM inbox WHERE place = v_place AND flags & 1 = 0 RETURNING id, flags, attempt, prio, look),
	d AS (INSERT INTO dead (id, whose, flags, attempt, prio, look, at) SELECT id, p_name, flags, attempt, prio, look, clock() FROM m)
	SELECT count(*) INTO gone FROM m;
	UPDATE ready SET only_for = NULL, only_until = NULL WHERE only_for = p_name; -- nobody is left for whom it would wait
	rc := 0;
END $$;

-- ---------------------------------------------------------------- sending

-- In a guarded room: is this sender the login's, and does the header say the same? Returns whether it is proven. An owner may send
-- in any name (carried mail, imports), and anybody may import into its own mailbox; neither is proven then.
CREATE FUNCTION guard_send(p_head bytea, p_sender text, p_how int, p_to text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
	v_from bytea := convert_to('From: ' || p_sender || '@' || (SELECT name FROM room) || chr(10), 'UTF8');
	v_true boolean := p_sender <> '' AND substr(p_head, 1, length(v_from)) = v_from
	    AND convert_from(substr(p_head, length(v_from) + 1), 'LATIN1') !~* '(^[ \t]|(^|\n)from[ \t]*:)';
BEGIN
	IF may('') THEN RETURN v_true; END IF;
	IF p_how & 1 <> 0 THEN PERFORM guard(''); END IF; -- mailboxes are made by owners
	IF p_how & 2 <> 0 THEN PERFORM guard(p_to); RETURN false; END IF;
	PERFORM guard(p_sender);
	IF NOT v_true THEN
		RAISE insufficient_privilege USING MESSAGE = format('the message does not say that it is from ''%s''', p_sender);
	END IF;
	RETURN true;
END $$;

-- What the key of a send says already; NULL: it is new. p_how 8: the key says all.
CREATE FUNCTION send_known(p_sender text, p_key text, p_digest text, p_how int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	v_known sendkey;
BEGIN
	SELECT * INTO v_known FROM sendkey k WHERE k.sender = p_sender AND k.key = p_key;
	IF NOT FOUND THEN RETURN NULL; END IF;
	IF v_known.digest <> p_digest AND p_how & 8 = 0 THEN RETURN '3 ' || v_known.id || ' key'; END IF;
	PERFORM settled();
	RETURN '0 ' || v_known.id || ' repeated';
END $$;

-- One send, whole or not at all. p_how: 1 make mailboxes, 2 an import (one agent; once a mailbox), 8 the key says all, 16 the body is in
-- chunks, and p_body is its outline. Returns "RC ID NOTE": one text costs a third less than three columns. Note 'repeated': the key was there, or (p_again) this
-- id with the same digest. RC 5: another message has that id (an import: that mailbox has it), and the driver picks a new one.
--
-- Most sends have one recipient: for those it is two lookups in one statement and an INSERT for each row. Nothing here is written by
-- two sends, and no lock lasts until the commit but shared ones and those of channels: commits of many clients go to disk together.
CREATE FUNCTION send(p_id text, p_head bytea, p_body bytea, p_digest text, p_sender text, p_agents text[],
    p_queues text[], p_channels text[], p_key text, p_how int, p_prio int, p_not_before bigint, p_look boolean, p_again boolean) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
DECLARE
	v_plain boolean := cardinality(p_agents) = 1 AND p_queues IS NULL AND p_channels IS NULL AND p_how & 2 = 0;
	v_agents int[];
	v_queues int[];
	v_channels int[];
	v_one int;
	v_sender int;
	v_note text;
	v_proven boolean := false;
	v_content bigint := 0;
BEGIN
	IF @G@ THEN v_proven := guard_send(p_head, p_sender, p_how, p_agents[1]); END IF;
	IF current_setting('synchronous_commit') IN ('off', 'local') THEN PERFORM set_config('synchronous_commit', 'on', true); END IF;
	v_note := pg_advisory_xact_lock_shared(@C@, 0)::text; -- an expression: a PERFORM is a whole query
	v_note := NULL;
	IF p_key IS NOT NULL THEN -- first: a repeat is known whatever became of the recipients; no lock is taken yet
		v_note := send_known(p_sender, p_key, p_digest, p_how);
		IF v_note IS NOT NULL THEN RETURN v_note; END IF;
	END IF;
	-- ---- who gets it
	SELECT (SELECT p.place FROM place p WHERE p.kind = 'a' AND p.name = p_sender AND p.here),
	    (SELECT p.place FROM place p WHERE p.kind = 'a' AND p.name = p_agents[1] AND p.here) INTO v_sender, v_one;
	IF NOT v_plain OR v_one IS NULL THEN
		-- a sub-select, not a join: without statistics the planner would compare all names with all
		SELECT array_agg(x.place), min(x.name) FILTER (WHERE x.place IS NULL) INTO v_agents, v_note FROM (SELECT t.name,
		    (SELECT p.place FROM place p WHERE p.kind = 'a' AND p.name = t.name AND p.here) AS place FROM unnest(p_agents) AS t(name) OFFSET 0) x;
		IF v_note IS NOT NULL AND p_how & 1 = 0 THEN RETURN '2 ' || p_id || ' ' || v_note; END IF;
		SELECT array_agg(p.place), min('queue:' || t.name) FILTER (WHERE p.place IS NULL) INTO v_queues, v_note
		    FROM unnest(p_queues) AS t(name) LEFT JOIN place p ON p.kind = 'q' AND p.name = t.name;
		IF v_note IS NOT NULL THEN RETURN '2 ' || p_id || ' ' || v_note; END IF;
		SELECT array_agg(p.place), min('channel:' || t.name) FILTER (WHERE p.place IS NULL) INTO v_channels, v_note
		    FROM unnest(p_channels) AS t(name) LEFT JOIN place p ON p.kind = 'c' AND p.name = t.name;
		IF v_note IS NOT NULL THEN RETURN '2 ' || p_id || ' ' || v_note; END IF;
		IF array_position(v_agents, NULL) IS NOT NULL THEN -- mailboxes to be made
			SELECT p.name INTO v_note FROM unnest(p_agents) AS t(name) JOIN place p
			    ON CASE WHEN p.kind = 'a' AND p.here THEN lower(p.name) END = lower(t.name) WHERE p.name <> t.name LIMIT 1;
			IF v_note IS NOT NULL THEN RETURN '3 ' || p_id || ' ' || v_note; END IF;
			INSERT INTO place (kind, name) SELECT 'a', t.name FROM unnest(p_agents) AS t(name) ORDER BY 2
			    ON CONFLICT (kind, name) DO UPDATE SET here = true WHERE NOT place.here;
			SELECT array_agg(p.place) INTO v_agents FROM unnest(p_agents) AS t(name) JOIN place p ON p.kind = 'a' AND p.name = t.name;
		END IF;
		v_one := v_agents[1];
	END IF;
	-- ---- from here on it is written
	IF p_how & 16 <> 0 THEN v_content := chunks_length(p_id); END IF;
	IF p_key IS NOT NULL THEN
		INSERT INTO sendkey VALUES (p_sender, p_key, p_id, p_digest, clock()) ON CONFLICT DO NOTHING;
		IF NOT FOUND THEN RETURN send_known(p_sender, p_key, p_digest, p_how); END IF; -- one that was under way: we waited for it, and see it now
	END IF;
	IF p_how & 2 <> 0 THEN
		PERFORM pg_advisory_xact_lock(token_lock(p_id));
		IF EXISTS (SELECT 1 FROM inbox i WHERE i.place = v_one AND i.id = p_id) OR
		    EXISTS (SELECT 1 FROM archive a WHERE a.place = v_one AND a.id = p_id) OR
		    EXISTS (SELECT 1 FROM dead d WHERE d.id = p_id AND d.whose = p_agents[1]) THEN
			PERFORM settled();
			RETURN '5 ' || p_id;
		END IF;
		IF @G@ AND EXISTS (SELECT 1 FROM message m WHERE m.id = p_id AND (m.head <> p_head OR p_body IS NULL OR p_how & 16 <> 0 OR m.content > 0 OR m.body <> p_body)) THEN
			PERFORM guard(''); -- an id that is known would else show the text of another's mail
		END IF;
	END IF;
	INSERT INTO message (id, head, body, digest, sender, prio, look, login, at, proven, content)
	    VALUES (p_id, p_head, coalesce(p_body, ''), p_digest, v_sender, p_prio, p_look, session_user, clock(), v_proven AND v_sender IS NOT NULL, v_content)
	    ON CONFLICT DO NOTHING;
	IF NOT FOUND AND p_how & 2 = 0 THEN
		IF p_again AND EXISTS (SELECT 1 FROM message m WHERE m.id = p_id AND m.digest = p_digest AND m.login = session_user) THEN
			PERFORM settled();
			RETURN '0 ' || p_id || ' repeated';
		END IF;
		DELETE FROM sendkey k WHERE k.sender = p_sender AND k.key = p_key AND k.id = p_id;
		RETURN '5 ' || p_id;
	END IF;
	IF v_plain THEN
		INSERT INTO inbox (place, id, prio, look) VALUES (v_one, p_id, p_prio, p_look);
		RETURN '0 ' || p_id;
	END IF;
	INSERT INTO inbox (place, id, prio, look) SELECT p, p_id, p_prio, p_look FROM unnest(v_agents) AS t(p);
	IF p_not_before > 0 AND at_ms(p_not_before) > wall() THEN
		INSERT INTO delayed SELECT p, nextval(pg_get_serial_sequence('@S@.ready', 'n')), p_id, p_prio, at_ms(p_not_before)
		    FROM unnest(v_queues) AS t(p);
	ELSE
		INSERT INTO ready (queue, id, prio) SELECT p, p_id, p_prio FROM unnest(v_queues) AS t(p);
	END IF;
	FOR v_one IN SELECT p FROM unnest(v_channels) AS t(p) ORDER BY p LOOP -- last, and in one order: these locks last until the commit
		PERFORM pg_advisory_xact_lock(@C@, v_one);
		INSERT INTO post SELECT v_one, 1 + greatest(
		    (SELECT c.last FROM place c WHERE c.place = v_one),
		    coalesce((SELECT o.n FROM post o WHERE o.channel = v_one ORDER BY o.n DESC LIMIT 1), 0)), p_id, clock();
	END LOOP;
	RETURN '0 ' || p_id;
END $$;

-- A body in pieces: chunk() for each, from its beginning, and send_long() behind them in the same transaction. The pieces of a message
-- that is there stay as they are. The lock is for one sender of the id at a time: a send that is asked again after a lost answer waits
-- until the first try ends, and finds its message. It comes before all other locks.
CREATE FUNCTION chunk(p_id text, p_at bigint, p_bytes bytea) RETURNS int LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
BEGIN
	IF @G@ AND NOT EXISTS (SELECT 1 FROM actor a WHERE a.login = session_user) THEN PERFORM guard(''); END IF;
	IF octet_length(p_bytes) NOT BETWEEN 1 AND 262144 OR p_at NOT BETWEEN 0 AND 134217728 - octet_length(p_bytes) THEN
		RAISE program_limit_exceeded USING MESSAGE = 'a piece of a body is empty, too large, or outside of 128 MiB';
	END IF;
	PERFORM pg_advisory_xact_lock(record_key('chunk', '', p_id));
	IF EXISTS (SELECT 1 FROM message WHERE id = p_id) THEN RETURN 0; END IF;
	IF p_at = 0 THEN DELETE FROM chunk WHERE id = p_id; END IF; -- of a transaction that sent nothing
	INSERT INTO chunk VALUES (p_id, p_at, p_bytes);
	RETURN 0;
END $$;
-- How long that body is: its pieces must follow one another from the first byte on. Of a message that is there nothing is asked.
CREATE FUNCTION chunks_length(p_id text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	v_bytes bigint;
	v_whole boolean;
BEGIN
	SELECT sum(x.bytes), bool_and(x.at = x.due) INTO v_bytes, v_whole FROM (SELECT c.at, octet_length(c.bytes) AS bytes,
	    coalesce(lag(c.at + octet_length(c.bytes)) OVER (ORDER BY c.at), 0) AS due FROM chunk c WHERE c.id = p_id) x;
	IF (v_whole IS NOT TRUE OR v_bytes > 134217728) AND NOT EXISTS (SELECT 1 FROM message WHERE id = p_id) THEN
		RAISE data_exception USING MESSAGE = 'the pieces of the body are not whole';
	END IF;
	RETURN coalesce(v_bytes, 0);
END $$;
CREATE FUNCTION send_long(p_id text, p_head bytea, p_body bytea, p_digest text, p_sender text, p_agents text[],
    p_queues text[], p_channels text[], p_key text, p_how int, p_prio int, p_not_before bigint, p_look boolean, p_again boolean) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
DECLARE
	v_said text;
BEGIN
	PERFORM durable(); -- also for what is taken back
	v_said := send(p_id, p_head, p_body, p_digest, p_sender, p_agents, p_queues, p_channels, p_key, p_how | 16, p_prio, p_not_before, p_look, p_again);
	DELETE FROM chunk c WHERE c.id = p_id AND NOT EXISTS (SELECT 1 FROM message m WHERE m.id = p_id);
	RETURN v_said;
END $$;
-- Pieces of a body, from that byte on: for who may fetch the message there. p_box: an agent, "queue:NAME" or "channel:NAME".
CREATE FUNCTION content(p_box text, p_id text, p_from bigint, p_bytes bigint) RETURNS SETOF bytea
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
BEGIN
	IF starts_with(p_box, 'channel:') THEN
		IF NOT EXISTS (SELECT 1 FROM post o JOIN place p ON p.place = o.channel WHERE o.id = p_id AND p.kind = 'c' AND p.name = substr(p_box, 9)) THEN RETURN; END IF;
	ELSIF NOT EXISTS (SELECT 1 FROM mail_fetch(p_box, p_id, 16, 0)) AND NOT EXISTS (SELECT 1 FROM mail_fetch(p_box, p_id, 15, 0)) THEN
		RETURN;
	END IF;
	RETURN QUERY SELECT CASE WHEN c.at >= p_from THEN c.bytes ELSE substr(c.bytes, (p_from - c.at)::int + 1) END FROM chunk c
	    WHERE c.id = p_id AND c.at > p_from - 262144 AND c.at < p_from + p_bytes AND c.at + octet_length(c.bytes) > p_from ORDER BY c.at;
END $$;

-- Many sends to one agent each, durable together.
CREATE FUNCTION send_many(p_id text[], p_head bytea[], p_body bytea[], p_digest text[], p_sender text[], p_to text[],
    p_prio text[], p_look text[], p_again boolean) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
BEGIN
	FOR i IN 1..cardinality(p_id) LOOP
		RETURN NEXT send(p_id[i], p_head[i], p_body[i], p_digest[i], p_sender[i], ARRAY[p_to[i]], NULL, NULL, NULL, 0,
		    p_prio[i]::int, 0, p_look[i] = 't', p_again);
	END LOOP;
END $$;

-- Wakes what waits there. A transaction of its own, behind the send in the same pipeline: NOTIFY takes a lock of the
-- whole server from before the commit until after it, with it the wait for disk and standby; alone it writes nothing.
-- A session that begins to wait after our snapshot looks at the mailbox after it, too, and sees what we committed.
CREATE FUNCTION poke(p_agents text[], p_queues text[], p_channels text[]) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
DECLARE
	v_place int;
	v_n int := 0;
BEGIN
	IF NOT pg_try_advisory_xact_lock_shared(@W@, 0) THEN -- place 0: what shows the whole room
		PERFORM pg_notify('mailroom_' || @W@ || '_0', '');
		v_n := 1;
	END IF;
	IF cardinality(p_agents) <= 8 AND p_queues IS NULL AND p_channels IS NULL THEN
		FOR i IN 1..cardinality(p_agents) LOOP
			SELECT place INTO v_place FROM place WHERE kind = 'a' AND name = p_agents[i];
			IF NOT pg_try_advisory_xact_lock(@W@, v_place) THEN
				PERFORM pg_notify('mailroom_' || @W@ || '_' || v_place, '');
				v_n := v_n + 1;
			END IF;
		END LOOP;
		RETURN v_n;
	END IF; -- many: not a lock each, which the server's table of locks has no room for, but one look at what waits
	FOR v_place IN SELECT DISTINCT p.place FROM (SELECT l.objid::bigint::int AS place FROM pg_locks l
	        WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.classid = @W@::oid AND l.mode = 'ShareLock') w JOIN place p USING (place)
	    WHERE p.name = ANY (CASE p.kind WHEN 'a' THEN p_agents WHEN 'q' THEN p_queues ELSE p_channels END) LOOP
		PERFORM pg_notify('mailroom_' || @W@ || '_' || v_place, '');
		v_n := v_n + 1;
	END LOOP;
	RETURN v_n;
END $$;

-- Before the caller looks. The session waits there until unwatch.
CREATE FUNCTION watch(p_kind text, p_name text, OUT rc int, OUT channel text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
DECLARE
	v_place int := 0;
BEGIN
	IF p_kind <> 'a' OR p_name <> '' THEN
		IF p_kind = 'a' THEN PERFORM guard(p_name); END IF;
		SELECT place INTO v_place FROM place WHERE kind = p_kind::"char" AND name = p_name AND here;
		IF v_place IS NULL THEN rc := 2; RETURN; END IF;
		PERFORM pg_advisory_lock_shared(@W@, v_place);
	END IF; -- '': the whole room, whose lock watch_room takes
	channel := 'mailroom_' || @W@ || '_' || v_place;
	EXECUTE 'LISTEN ' || quote_ident(channel);
	rc := 0;
END $$;
-- The whole room, once a second. What is no mail pokes nobody, but every transaction that writes changes this text, also one of another
-- database. One session has the lock by which senders see that somebody waits; the others take it when that one ends. It tells
-- when something happened and nothing else, as pg_current_snapshot() does to every login: no guard.
CREATE FUNCTION watch_room(OUT print text) LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
BEGIN
	PERFORM pg_try_advisory_lock(@W@, 0);
	print := pg_current_snapshot();
END $$;
CREATE FUNCTION unwatch(p_channel text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
BEGIN
	EXECUTE 'UNLISTEN ' || quote_ident(p_channel);
	RETURN p_channel LIKE '%\_0' OR pg_advisory_unlock_shared(@W@, split_part(p_channel, '_', 3)::int); -- the room's ends with the session
END $$;

-- ---------------------------------------------------------------- looking

CREATE TYPE letter AS (id text, folder int, flags int, attempt int, token text, released_ms bigint, prio int, look boolean, total bigint, size int, head bytea, body bytea, author text, content bigint);

-- The agent for whom the login of a message was checked.
CREATE FUNCTION author(p_sender int, p_proven boolean) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN CASE WHEN p_proven THEN (SELECT name FROM place WHERE place = p_sender) END;
END $$;

-- p_depth: 0 names, 1 headers, 2 bodies, 3 names with the text of the first 32 if it is not long. p_order: 0 oldest first, 1 newest first, 2 by urgency, 3 as work. Orders 0 and 1
-- go on behind the id p_after; 2 and 3 come whole, and begin with all mail to look into, which p_limit (0: all) does not
-- count. p_from, p_until: ids between them; p_look: only mail to look into; p_total: how many there are is wanted. A row
-- with folder -2: there is no such mailbox. The text of the query is made of fixed pieces.
--
-- p_depth 4 counts: one row for all that differ in nothing but their id, with the oldest of the ids, and how many there are
-- in `total`; a row for each second of the last two minutes, because somebody counts what came lately.
CREATE FUNCTION scan(p_agent text, p_folders int, p_depth int, p_order int, p_unread boolean, p_suffix text,
    p_after text, p_from text, p_until text, p_look boolean, p_limit int, p_total boolean) RETURNS SETOF letter
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp ROWS 50 AS $$
DECLARE
	v_place int;
	v_limit text := CASE WHEN p_limit > 0 THEN ' LIMIT ' || p_limit ELSE '' END;
	v_where text := CASE WHEN p_unread THEN ' AND flags & 1 = 0' ELSE '' END
	    || CASE WHEN p_look THEN ' AND look' ELSE '' END
	    || CASE WHEN p_suffix IS NOT NULL THEN ' AND id = ANY ($4)' ELSE '' END
	    || CASE WHEN p_from IS NOT NULL THEN ' AND id >= $6' ELSE '' END || CASE WHEN p_until IS NOT NULL THEN ' AND id < $7' ELSE '' END
	    || CASE WHEN p_after IS NULL THEN '' WHEN p_order = 1 THEN ' AND id < $5' ELSE ' AND id > $5' END;
	v_order text := CASE p_order WHEN 0 THEN 'id' WHEN 1 THEN 'id DESC' WHEN 2 THEN 'look DESC, prio, id DESC'
	    ELSE 'look DESC, released IS NOT NULL, prio, released, id' END;
	v_ids text[]; -- those that end so: found by an index, however much is archived
	v_rows text;
	v_all text;
BEGIN
	IF p_folders <> 16 THEN
		IF @G@ THEN PERFORM guard(p_agent); END IF;
		v_place := agent_place(p_agent);
		IF v_place IS NULL THEN RETURN NEXT ROW('', -2, 0, 0, NULL, 0, 0, false, 0, 0, NULL, NULL, NULL, 0)::letter; RETURN; END IF;
	END IF;
	IF p_folders = 1 AND p_unread AND p_suffix IS NULL AND p_after IS NULL AND p_order = 0 AND p_depth IN (1, 2) AND p_from IS NULL AND p_until IS NULL
	    AND NOT p_look AND NOT p_total THEN
		-- what every prompt asks: a plan that is kept
		RETURN QUERY SELECT i.id, 1, i.flags::int, i.attempt::int, NULL::text, coalesce(ms(i.released), 0), i.prio::int, i.look, 0::bigint,
		    size_of(m.head, m.body, m.content), m.head, CASE WHEN p_depth > 1 THEN m.body END,
		    CASE WHEN @G@ THEN author(m.sender, m.proven) END, m.content
		    FROM inbox i JOIN message m ON m.id = i.id
		    WHERE i.place = v_place AND i.kind IS NULL AND i.flags & 1 = 0 ORDER BY i.id LIMIT nullif(p_limit, 0);
		RETURN;
	END IF;
	IF length(p_suffix) >= 6 THEN
		v_ids := ARRAY(SELECT m.id FROM message m WHERE "right"(m.id, 6) = "right"(p_suffix, 6) AND "right"(m.id, length(p_suffix)) = p_suffix);
	ELSIF p_suffix IS NOT NULL THEN
		v_ids := ARRAY(SELECT m.id FROM message m WHERE "right"(m.id, length(p_suffix)) = p_suffix);
	END IF;
	v_rows := 'SELECT * FROM (' || array_to_string(ARRAY[
	    CASE WHEN p_folders & 3 <> 0 THEN 'SELECT id, CASE WHEN kind IS NULL THEN 1 ELSE 2 END AS folder, flags::int AS flags, '
	        'attempt + (kind IS NOT NULL)::int AS attempt, CASE WHEN kind IS NOT NULL THEN token END AS token, released, prio::int AS prio, look FROM inbox '
	        'WHERE place = $1 AND CASE WHEN kind IS NULL THEN 1 ELSE 2 END & $2 <> 0' || v_where END,
	    CASE WHEN p_folders & 4 <> 0 THEN 'SELECT id, 4, flags::int, attempt::int, NULL::text, NULL::timestamptz, prio::int, look FROM archive WHERE place = $1' || v_where END,
	    CASE WHEN p_folders & 8 <> 0 THEN 'SELECT id, 8, 1, 0, NULL::text, NULL::timestamptz, prio::int, look FROM message WHERE sender = $1'
	        || replace(v_where, 'flags', '1') END,
	    CASE WHEN p_folders & 16 <> 0 THEN 'SELECT id, 16, flags::int, attempt::int, NULL::text, NULL::timestamptz, prio::int, look FROM dead WHERE '
	        || CASE WHEN @G@ THEN 'may(whose)' ELSE 'true' END || v_where END], ' UNION ALL ')
	    || ') u (id, folder, flags, attempt, token, released, prio, look)';
	v_all := CASE WHEN p_order < 2 OR p_limit = 0 THEN v_rows || ' ORDER BY ' || v_order || v_limit
	    ELSE '(' || v_rows || ' WHERE look) UNION ALL (' || v_rows || ' WHERE NOT look ORDER BY ' || v_order || v_limit || ')' END;
	IF p_depth = 4 THEN
		v_all := 'SELECT min(id) AS id, folder, flags & 1 AS flags, 0 AS attempt, NULL::text AS token, NULL::timestamptz AS released, prio, '
		    || 'false AS look, count(*) AS n FROM (' || v_rows || ') g GROUP BY folder, flags & 1, prio, CASE WHEN id >= $8 THEN "left"(id, 8) END ORDER BY 1';
	END IF;
	IF p_depth = 3 THEN v_all := 'SELECT x.*, row_number() OVER (ORDER BY ' || v_order || ') AS rn FROM (' || v_all || ') x'; END IF;
	RETURN QUERY EXECUTE 'SELECT c.id, c.folder, c.flags, c.attempt, c.token, coalesce(ms(c.released), 0), c.prio, c.look, '
	    || CASE WHEN p_total THEN '(SELECT count(*) FROM (' || v_rows || ') n), ' WHEN p_depth = 4 THEN 'c.n, ' ELSE '0::bigint, ' END
	    || CASE WHEN p_depth IN (0, 4) THEN '0, NULL::bytea, NULL::bytea, NULL::text, 0::bigint'
	        ELSE 'coalesce(size_of(m.head, m.body, m.content), 0), m.head, CASE WHEN $3 > 1 THEN m.body END, '
	            || CASE WHEN @G@ THEN 'author(m.sender, m.proven)' ELSE 'NULL::text' END || ', coalesce(m.content, 0)' END
	    || ' FROM (' || v_all || ') c '
	    || CASE p_depth WHEN 0 THEN '' WHEN 4 THEN '' WHEN 3 THEN 'LEFT JOIN message m ON m.id = c.id AND c.rn <= 32 AND m.content = 0 AND octet_length(m.body) <= 16384'
	        ELSE 'JOIN message m ON m.id = c.id' END
	    || ' ORDER BY ' || regexp_replace(v_order, '\m(id|look|prio|released)\M', 'c.\1', 'g')
	    USING v_place, p_folders, p_depth, v_ids, p_after, p_from, p_until, CASE WHEN p_depth = 4 THEN id_at(wall() - interval '2 minutes') END;
END $$;

-- p_agent is an agent, or "queue:NAME": work in whatever state.
CREATE FUNCTION mail_fetch(p_agent text, p_id text, p_folders int, p_depth int) RETURNS SETOF letter
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp ROWS 1 AS $$
#variable_conflict use_column
DECLARE
	v_place int := agent_place(p_agent);
BEGIN
	IF starts_with(p_agent, 'queue:') THEN
		RETURN QUERY SELECT m.id, CASE WHEN x.token IS NULL THEN 0 ELSE 2 END, 0, x.attempt::int, x.token, 0::bigint, m.prio::int, m.look, 0::bigint,
		    size_of(m.head, m.body, m.content), m.head, m.body, CASE WHEN @G@ THEN author(m.sender, m.proven) END, m.content
		FROM place p CROSS JOIN LATERAL (
		    SELECT attempt, NULL::text AS token FROM ready WHERE queue = p.place AND id = p_id
		    UNION ALL SELECT 0::smallint, NULL FROM delayed WHERE queue = p.place AND id = p_id
		    UNION ALL SELECT attempt, token FROM claim WHERE queue = p.place AND id = p_id
		    UNION ALL SELECT attempt, NULL FROM finished WHERE queue = p.place AND id = p_id) x
		JOIN message m ON m.id = p_id WHERE p.kind = 'q' AND p.name = substr(p_agent, 7) LIMIT 1;
		RETURN;
	END IF;
	IF @G@ AND p_folders <> 16 THEN PERFORM guard(p_agent); END IF;
	RETURN QUERY SELECT c.id, c.folder, c.flags::int, c.attempt::int, c.token, coalesce(ms(c.released), 0), m.prio::int, m.look, 0::bigint, size_of(m.head, m.body, m.content),
	    CASE WHEN p_depth > 0 THEN m.head END, CASE WHEN p_depth > 1 THEN m.body END, CASE WHEN @G@ THEN author(m.sender, m.proven) END, m.content
	FROM (
	    SELECT i.id, CASE WHEN i.kind IS NULL THEN 1 ELSE 2 END AS folder, flags::int, attempt + (i.kind IS NOT NULL)::int AS attempt,
	        CASE WHEN i.kind IS NOT NULL THEN token END AS token, i.released FROM inbox i WHERE i.place = v_place AND i.id = p_id
	    UNION ALL SELECT a.id, 4, flags, attempt, NULL, NULL FROM archive a WHERE a.place = v_place AND a.id = p_id
	    UNION ALL SELECT s.id, 8, 1, 0, NULL, NULL FROM message s WHERE s.sender = v_place AND s.id = p_id
	    UNION ALL SELECT d.id, 16, flags, attempt, NULL, NULL FROM dead d WHERE d.id = p_id AND may(d.whose)) c
	JOIN message m ON m.id = c.id WHERE c.folder & p_folders <> 0 ORDER BY c.folder LIMIT 1;
END $$;

-- ---------------------------------------------------------------- marks and moves

-- The inbox keeps 64 to 128 seen messages, as the native room does: looking costs by what is unread.
CREATE FUNCTION file_away(p_place int) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
BEGIN
	IF (SELECT count(*) FROM (SELECT 1 FROM inbox WHERE place = p_place AND flags & 5 = 1 AND kind IS NULL LIMIT 129) x) <= 128 THEN RETURN; END IF;
	WITH old AS (SELECT id FROM inbox WHERE place = p_place AND flags & 5 = 1 AND kind IS NULL ORDER BY id LIMIT 65 FOR UPDATE SKIP LOCKED),
	gone AS (DELETE FROM inbox i USING old WHERE i.place = p_place AND i.id = old.id RETURNING i.place, i.id, i.flags, i.attempt, i.prio, i.look, i.token)
	INSERT INTO archive SELECT * FROM gone ON CONFLICT DO NOTHING;
END $$;

-- p_to: 0 it stays, 1 inbox, 4 archive, 16 dead letters.
CREATE FUNCTION mark(p_agent text, p_id text, p_set int, p_clear int, p_to int, p_again boolean, OUT rc int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
DECLARE
	v_place int := agent_place(p_agent);
	v inbox;
	v_flags smallint;
	a archive;
BEGIN
	PERFORM durable(), guard(p_agent);
	rc := 0;
	SELECT * INTO v FROM inbox WHERE place = v_place AND id = p_id FOR UPDATE;
	IF FOUND THEN
		IF v.kind IS NOT NULL THEN rc := 6; RETURN; END IF;
		v_flags := (v.flags & ~p_clear) | p_set;
		IF p_to IN (0, 1) THEN
			IF v_flags <> v.flags THEN UPDATE inbox SET flags = v_flags WHERE place = v_place AND id = p_id; END IF;
			IF p_set & 1 <> 0 THEN PERFORM file_away(v_place); END IF;
			RETURN;
		END IF;
		DELETE FROM inbox WHERE place = v_place AND id = p_id;
		IF p_to = 4 THEN
			INSERT INTO archive VALUES (v_place, p_id, v_flags, v.attempt, v.prio, v.look, v.token) ON CONFLICT DO NOTHING;
		ELSE
			INSERT INTO dead (id, whose, flags, attempt, prio, look, at) VALUES (p_id, p_agent, v_flags, v.attempt, v.prio, v.look, clock());
		END IF;
		RETURN;
	END IF;
	SELECT * INTO a FROM archive WHERE place = v_place AND id = p_id FOR UPDATE;
	IF NOT FOUND OR p_to = 16 THEN
		rc := CASE WHEN p_to = 16 AND p_again AND EXISTS (SELECT 1 FROM dead WHERE id = p_id AND whose = p_agent) THEN 0 ELSE 2 END;
		RETURN;
	END IF;
	v_flags := (a.flags & ~p_clear) | p_set;
	IF p_to = 1 THEN
		DELETE FROM archive WHERE place = v_place AND id = p_id;
		INSERT INTO inbox (place, id, flags, attempt, prio, look) VALUES (v_place, p_id, v_flags, a.attempt, a.prio, a.look);
	ELSE
		UPDATE archive SET flags = v_flags WHERE place = v_place AND id = p_id AND flags <> v_flags;
	END IF;
END $$;

-- ---------------------------------------------------------------- claims on mail

-- p_kind p: the session has the lock of the token before the hold can be seen.
CREATE FUNCTION hold(p_agent text, p_id text, p_kind text, p_life int, p_lease_ms bigint, p_token text, p_session text,
    p_host text, p_pid bigint, p_start bigint, p_ns bigint, p_boot text, p_again boolean,
    OUT rc int, OUT attempt int, OUT deadline_ms bigint, OUT since_ms bigint, OUT flags int, OUT newest int, OUT prio int, OUT look boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
#variable_conflict use_column
DECLARE
	v_place int := agent_place(p_agent);
	v_deadline timestamptz;
	v_now timestamptz := clock();
	v inbox;
BEGIN
	IF @G@ THEN PERFORM guard(p_agent); END IF;
	IF v_place IS NULL THEN rc := 2; RETURN; END IF;
	PERFORM pg_advisory_xact_lock_shared(@C@, v_place);
	SELECT p.life INTO newest FROM place p WHERE p.place = v_place AND p.here; -- behind the lock
	IF newest IS NULL OR newest > p_life THEN rc := 3; RETURN; END IF;
	IF p_kind = 'p' THEN -- ends with this session in any case: no wait for the disk
		PERFORM set_config('synchronous_commit', 'off', true);
		PERFORM pg_advisory_lock(token_lock(p_token)); -- once more is no harm: it ends with the session
	ELSE
		PERFORM durable();
		v_deadline := v_now + p_lease_ms * interval '1 ms';
	END IF;
	UPDATE inbox i SET token = p_token, kind = p_kind::"char", life = p_life, since = v_now, deadline = v_deadline,
	    session = p_session, host = p_host, pid = p_pid, pid_start = p_start, pid_ns = p_ns, boot = p_boot
	WHERE i.place = v_place AND i.id = p_id AND i.kind IS NULL AND i.flags & 1 = 0
	RETURNING i.attempt + 1, i.flags, i.prio, i.look INTO attempt, flags, prio, look;
	IF FOUND THEN
		rc := 0; deadline_ms := coalesce(ms(v_deadline), 0); since_ms := ms(v_now);
		RETURN;
	END IF;
	SELECT * INTO v FROM inbox i WHERE i.place = v_place AND i.id = p_id;
	rc := CASE WHEN v.kind IS NULL THEN 2 WHEN p_again AND v.token = p_token THEN 0 ELSE 6 END;
	IF rc = 0 THEN
		attempt := v.attempt + 1; flags := v.flags; prio := v.prio; look := v.look; since_ms := ms(v.since); deadline_ms := coalesce(ms(v.deadline), 0);
	END IF;
END $$;

-- A page of what a command is about to show, in one call; what cannot be held is left out. attempt goes down by one here, and up again when the
-- message was shown or given back unseen: one that only waited for its turn when the command was killed was not handed out. Asked again (p_again)
-- it returns what the first try took, too.
CREATE FUNCTION hold_many(p_agent text, p_ids text[], p_life int, p_token text, p_session text, p_host text, p_pid bigint, p_start bigint, p_ns bigint, p_boot text, p_again boolean)
RETURNS TABLE (id text, attempt int, since_ms bigint, flags int, prio int, look boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
#variable_conflict use_column
DECLARE
	v_place int := agent_place(p_agent);
	v_now timestamptz := clock();
BEGIN
	IF @G@ THEN PERFORM guard(p_agent); END IF;
	PERFORM pg_advisory_xact_lock_shared(@C@, v_place);
	IF NOT EXISTS (SELECT 1 FROM place p WHERE p.place = v_place AND p.here AND p.life <= p_life) THEN RETURN; END IF;
	PERFORM set_config('synchronous_commit', 'off', true), pg_advisory_lock(token_lock(p_token));
	IF p_again THEN
		RETURN QUERY SELECT i.id, i.attempt + 2, ms(i.since), i.flags::int, i.prio::int, i.look FROM inbox i
		    WHERE i.place = v_place AND i.id = ANY (p_ids) AND i.kind = 'p' AND i.token = p_token;
	END IF;
	RETURN QUERY UPDATE inbox i SET attempt = i.attempt - 1, token = p_token, kind = 'p', life = p_life, since = v_now, deadline = NULL,
	    session = p_session, host = p_host, pid = p_pid, pid_start = p_start, pid_ns = p_ns, boot = p_boot
	WHERE i.place = v_place AND i.id = ANY (p_ids) AND i.kind IS NULL AND i.flags & 1 = 0
	RETURNING i.id, i.attempt + 2, ms(v_now), i.flags::int, i.prio::int, i.look;
END $$;

-- Ends holds of the session with that token. p_hows: s seen, a archive, b back, n not shown; p_ahead: 1 where hold_many took it. Returns those
-- that were over already.
CREATE FUNCTION settle_many(p_agent text, p_token text, p_ids text[], p_hows text[], p_ahead text[], p_again boolean) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
#variable_conflict use_column
DECLARE
	v_place int := agent_place(p_agent);
	v_found text[];
BEGIN
	PERFORM durable(), guard(p_agent);
	WITH want AS (SELECT * FROM unnest(p_ids, p_hows, p_ahead) AS t(id, how, ahead)),
	kept AS (UPDATE inbox i SET kind = NULL, deadline = NULL, attempt = i.attempt + w.ahead::int + (w.how = 'b')::int, flags = i.flags | (w.how = 's')::int,
	        released = CASE WHEN w.how <> 's' THEN i.released END
	    FROM want w WHERE i.place = v_place AND i.id = w.id AND i.token = p_token AND i.kind IS NOT NULL AND w.how <> 'a' RETURNING i.id),
	gone AS (DELETE FROM inbox i USING want w WHERE i.place = v_place AND i.id = w.id AND i.token = p_token AND i.kind IS NOT NULL AND w.how = 'a'
	    RETURNING i.place, i.id, i.flags | 1, i.attempt + w.ahead::int, i.prio, i.look, i.token),
	filed AS (INSERT INTO archive SELECT * FROM gone ON CONFLICT DO NOTHING)
	SELECT array_agg(x.id) INTO v_found FROM (SELECT id FROM kept UNION ALL SELECT id FROM gone) x;
	IF 's' = ANY (p_hows) THEN PERFORM file_away(v_place); END IF;
	RETURN QUERY SELECT w.id FROM unnest(p_ids) AS w(id) WHERE w.id <> ALL (coalesce(v_found, '{}'))
	    AND NOT (p_again AND (EXISTS (SELECT 1 FROM inbox i WHERE i.place = v_place AND i.id = w.id AND i.token = p_token AND i.kind IS NULL)
	        OR EXISTS (SELECT 1 FROM archive a WHERE a.place = v_place AND a.id = w.id AND a.token = p_token)));
END $$;

-- p_how: b back, l later, s seen, a archive, d done, f failed. Token and attempt together are the fence. Asked again
-- (p_again) it finds its own token where it put the message.
-- p_ahead: 1 where hold_many took it, and its attempt is not counted yet.
CREATE FUNCTION settle(p_agent text, p_id text, p_token text, p_attempt int, p_how text, p_ahead int, p_again boolean, OUT rc int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
DECLARE
	v_place int := agent_place(p_agent);
	v inbox;
BEGIN
	PERFORM durable(), guard(p_agent);
	rc := 0;
	SELECT * INTO v FROM inbox WHERE place = v_place AND id = p_id AND token = p_token FOR UPDATE;
	IF v.kind IS NULL OR v.attempt <> p_attempt - 1 - p_ahead THEN
		IF p_again AND (EXISTS (SELECT 1 FROM past WHERE id = p_id AND token = p_token AND attempt = p_attempt AND how = p_how::"char")
		    OR (v.id IS NOT NULL AND v.kind IS NULL AND (v.flags & 1 = 1) = (p_how = 's'))
		    OR EXISTS (SELECT 1 FROM archive WHERE place = v_place AND id = p_id AND token = p_token AND p_how IN ('a', 'd', 's'))) THEN
			RETURN;
		END IF;
		rc := 2; RETURN;
	END IF;
	IF v.kind = 'l' AND p_how IN ('b', 'l', 'd', 'f') THEN
		INSERT INTO past (id, box, token, attempt, agent, life, since, ended, how)
		    VALUES (p_id, p_agent, p_token, p_attempt, p_agent, v.life, v.since, clock(), p_how::"char");
	END IF;
	IF p_how IN ('b', 'l', 's') THEN
		UPDATE inbox SET kind = NULL, deadline = NULL, attempt = p_attempt - (p_how <> 'b')::int, flags = flags | (p_how = 's')::int,
		    released = CASE p_how WHEN 'l' THEN clock() WHEN 'b' THEN released END WHERE place = v_place AND id = p_id;
		IF p_how = 's' THEN PERFORM file_away(v_place); END IF;
		RETURN;
	END IF;
	DELETE FROM inbox WHERE place = v_place AND id = p_id;
	IF p_how = 'f' THEN
		INSERT INTO dead (id, whose, flags, attempt, prio, look, at) VALUES (p_id, p_agent, v.flags, p_attempt, v.prio, v.look, clock());
	ELSE
		INSERT INTO archive VALUES (v_place, p_id, v.flags | CASE p_how WHEN 'd' THEN 17 ELSE 1 END, p_attempt - 1, v.prio, v.look, p_token)
		ON CONFLICT DO NOTHING;
	END IF;
END $$;

CREATE FUNCTION extend(p_agent text, p_id text, p_token text, p_attempt int, p_lease_ms bigint, OUT rc int, OUT deadline_ms bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
DECLARE
	v_kind "char";
BEGIN
	PERFORM durable(), guard(p_agent);
	SELECT kind INTO v_kind FROM inbox WHERE place = agent_place(p_agent) AND id = p_id AND token = p_token
	    AND (attempt = p_attempt - 1 OR kind = 'p') AND kind IS NOT NULL FOR UPDATE;
	rc := CASE WHEN FOUND THEN 0 ELSE 2 END;
	deadline_ms := 0; -- a hold by a session lasts as long as that
	IF v_kind = 'l' THEN
		UPDATE inbox SET deadline = clock() + p_lease_ms * interval '1 ms' WHERE place = agent_place(p_agent) AND id = p_id
		RETURNING ms(deadline) INTO deadline_ms;
	END IF;
END $$;

CREATE TYPE held AS (box text, agent text, id text, token text, life int, attempt int, prio int, kind text, flags int, since_ms bigint, deadline_ms bigint,
    over boolean, pid bigint, pid_start bigint, pid_ns bigint, boot text, state int, not_before_ms bigint, released_ms bigint, only_for text, only_until_ms bigint);

-- A row of state -2: there is no such mailbox.
CREATE FUNCTION holds(p_agent text) RETURNS SETOF held LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
#variable_conflict use_column
DECLARE
	v_place int := agent_place(p_agent);
BEGIN
	IF @G@ THEN PERFORM guard(p_agent); END IF;
	IF v_place IS NULL THEN
		RETURN NEXT ROW(NULL, NULL, NULL, NULL, 0, 0, 0, NULL, 0, 0, 0, false, 0, 0, 0, NULL, -2, 0, 0, NULL, 0)::held;
		RETURN;
	END IF;
	RETURN QUERY SELECT p_agent, p_agent, i.id, i.token, i.life, i.attempt + 1, 2, i.kind::text, i.flags::int, ms(i.since), CASE WHEN i.kind = 'l' THEN ms(i.deadline) ELSE 0 END,
	    is_over(i.kind, i.token, i.deadline), i.pid, i.pid_start, i.pid_ns, i.boot, 4, 0::bigint, 0::bigint, NULL::text, 0::bigint
	FROM inbox i WHERE i.place = v_place AND i.kind IS NOT NULL ORDER BY i.id;
END $$;

-- Puts back what is over. A lease whose holder's harness ran on the caller's boot is judged by the caller first: those are
-- returned, and put back when their tokens come in p_dead. A row of NULLs: there is no such mailbox.
CREATE FUNCTION sweep(p_agent text, p_boot text, p_dead text[]) RETURNS TABLE (token text, pid bigint, pid_start bigint, pid_ns bigint, boot text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
#variable_conflict use_column
DECLARE
	v_place int := agent_place(p_agent);
	v_ids text[];
BEGIN
	IF @G@ THEN PERFORM guard(p_agent); END IF;
	IF v_place IS NULL THEN RETURN NEXT; RETURN; END IF;
	IF NOT EXISTS (SELECT 1 FROM inbox i WHERE i.place = v_place AND i.kind IS NOT NULL) THEN RETURN; END IF;
	SELECT array_agg(x.id) INTO v_ids FROM (SELECT i.id FROM inbox i WHERE i.place = v_place AND i.kind IS NOT NULL
	    AND is_over(i.kind, i.token, i.deadline) AND (i.kind = 'p' OR i.pid = 0 OR i.boot <> p_boot OR i.token = ANY (p_dead))
	    FOR UPDATE SKIP LOCKED) x;
	IF v_ids IS NOT NULL THEN PERFORM give_back(v_place, p_agent, v_ids); END IF;
	RETURN QUERY SELECT i.token, i.pid, i.pid_start, i.pid_ns, i.boot FROM inbox i
	    WHERE i.place = v_place AND i.kind = 'l' AND i.pid <> 0 AND i.boot = p_boot AND is_over(i.kind, i.token, i.deadline);
END $$;

-- After a reconnect: the locks of what this handle still holds.
CREATE FUNCTION rehold(p_token text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
BEGIN
	RETURN pg_try_advisory_lock(token_lock(p_token));
END $$;

-- ---------------------------------------------------------------- queues and channels

-- p_kind: q or c.
CREATE FUNCTION place_make(p_kind text, p_name text) RETURNS int LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
BEGIN
	PERFORM durable();
	IF p_kind NOT IN ('q', 'c') THEN PERFORM guard(''); END IF;
	INSERT INTO place (kind, name) VALUES (p_kind::"char", p_name) ON CONFLICT DO NOTHING;
	RETURN 0;
END $$;

CREATE FUNCTION place_remove(p_kind text, p_name text, p_to_dead boolean, p_again boolean, OUT rc int, OUT gone int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
DECLARE
	q int;
BEGIN
	PERFORM durable(), guard_box(CASE p_kind WHEN 'q' THEN 'queue' WHEN 'c' THEN 'channel' END, p_name);
	gone := 0;
	PERFORM pg_advisory_xact_lock(@C@, 0);
	SELECT place INTO q FROM place WHERE kind = p_kind::"char" AND name = p_name;
	IF q IS NULL THEN rc := CASE WHEN p_again THEN 0 ELSE 2 END; RETURN; END IF;
	SELECT (SELECT count(*) FROM ready WHERE queue = q) + (SELECT count(*) FROM delayed WHERE queue = q)
	    + (SELECT count(*) FROM claim WHERE queue = q) INTO gone;
	IF gone > 0 AND NOT p_to_dead THEN rc := 3; RETURN; END IF;
	WITH r AS (DELETE FROM ready WHERE queue = q RETURNING id, attempt, prio),
	d AS (DELETE FROM delayed WHERE queue = q RETURNING id, 0::smallint, prio),
	c AS (DELETE FROM claim WHERE queue = q RETURNING id, attempt, prio),
	f AS (DELETE FROM finished WHERE queue = q RETURNING id, attempt, prio, failed)
	INSERT INTO dead (id, whose, flags, attempt, prio, at) SELECT id, 'queue:' || p_name, 0, attempt, prio, clock() FROM
	    (SELECT * FROM r UNION ALL SELECT * FROM d UNION ALL SELECT * FROM c UNION ALL SELECT id, attempt, prio FROM f WHERE failed) x;
	DELETE FROM low WHERE queue = q;
	DELETE FROM post WHERE channel = q;
	DELETE FROM place WHERE place = q;
	rc := 0;
END $$;

-- In a guarded room the queue's own settings say who claims and how many; in others the office has read them.
CREATE FUNCTION guard_claim(p_queue text, p_agent text, INOUT max int) LANGUAGE plpgsql STABLE AS $$
DECLARE
	v_short text := '^([^/]+)/(crew|polecats)/([^/]+)$';
	v_claimers text := rtrim(coalesce(setting('queue', p_queue, 'Claimers'), '*'), '/');
	v_pattern text := '^' || replace(regexp_replace(v_claimers, '([^A-Za-z0-9*/])', '\\\1', 'g'), '*', '[^/]+') || '$';
	v_max int := coalesce(setting('queue', p_queue, 'Max-Claims'), '0')::int;
BEGIN
	IF @G@ THEN PERFORM guard(p_agent); END IF;
	IF v_claimers <> '*' AND p_agent !~ v_pattern AND regexp_replace(p_agent, v_short, '\1/\3') !~ v_pattern
	    AND regexp_replace(p_agent, v_short, '\1/\3') <> regexp_replace(v_claimers, v_short, '\1/\3') THEN
		RAISE insufficient_privilege USING MESSAGE = format('''%s'' may not claim from the queue ''%s''', p_agent, p_queue);
	END IF;
	IF v_max > 0 AND (max = 0 OR max > v_max) THEN max := v_max; END IF;
END $$;

-- One winner, whatever waits. Rows below `low` are gone; without it an old snapshot (a backup of an hour) would make
-- every claim walk over the dead versions of all work done since. The hint moves every 5 s, in two steps: what is the
-- head now counts 5 s later, when a send that took a smaller number has been committed. Work that comes back below it
-- lowers it; whatever else gets below it (a commit that waited long for its standby) is found within 5 minutes.
CREATE FUNCTION claim(p_queue text, p_agent text, p_life int, p_by_prio boolean, p_max int, p_kind text,
    p_lease_ms bigint, p_token text, p_session text, p_host text, p_pid bigint, p_start bigint, p_ns bigint, p_boot text, p_again boolean,
    OUT rc int, OUT id text, OUT attempt int, OUT since_ms bigint, OUT deadline_ms bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
#variable_conflict use_column
DECLARE
	q int;
	v_agent int;
	v_life int;
	v_live int;
	v_n bigint;
	v_tid tid;
	v_prio smallint;
	v_low bigint;
	v_due boolean;
	v_at timestamptz;
	v_now timestamptz := clock();
	v_wall timestamptz := wall();
	v_deadline timestamptz;
BEGIN
	IF current_setting('synchronous_commit') IN ('off', 'local') THEN PERFORM set_config('synchronous_commit', 'on', true); END IF;
	IF @G@ THEN p_max := guard_claim(p_queue, p_agent, p_max); END IF;
	PERFORM pg_advisory_xact_lock_shared(@C@, 0);
	SELECT p.place INTO q FROM place p WHERE p.kind = 'q' AND p.name = p_queue;
	IF q IS NULL THEN rc := 2; RETURN; END IF;
	IF p_kind = 'l' THEN PERFORM pg_advisory_xact_lock(token_lock(p_token)); END IF; -- asked again, it waits for the first try to end
	IF p_again THEN -- tokens of leases are made by the client, for one claim each
		SELECT c.id, c.attempt, ms(c.since), ms(c.deadline) INTO id, attempt, since_ms, deadline_ms FROM claim c
		    WHERE c.token = p_token AND c.queue = q AND c.kind = 'l';
		IF FOUND THEN rc := 0; RETURN; END IF;
	END IF;
	IF p_life > 0 THEN
		v_agent := agent_place(p_agent);
		PERFORM pg_advisory_xact_lock_shared(@C@, v_agent);
		SELECT p.life INTO v_life FROM place p WHERE p.place = v_agent;
		IF v_life > p_life THEN rc := 3; RETURN; END IF;
	END IF;
	IF p_max > 0 THEN
		PERFORM pg_advisory_xact_lock(@C@, -q);
		SELECT count(*) INTO v_live FROM claim c WHERE c.queue = q AND NOT is_over(c.kind, c.token, c.deadline);
		IF v_live >= p_max THEN rc := 6; RETURN; END IF;
	END IF;
	IF EXISTS (SELECT 1 FROM delayed d WHERE d.queue = q AND d.not_before <= v_wall) THEN
		WITH due AS (SELECT d.id FROM delayed d WHERE d.queue = q AND d.not_before <= v_wall ORDER BY d.not_before LIMIT 100
		    FOR UPDATE SKIP LOCKED),
		gone AS (DELETE FROM delayed d USING due WHERE d.queue = q AND d.id = due.id RETURNING d.n, d.id, d.prio),
		back AS (INSERT INTO ready (queue, n, id, prio) SELECT q, g.n, g.id, g.prio FROM gone g)
		UPDATE low l SET low = least(l.low, g.n), next = least(l.next, g.n) FROM (SELECT min(n) AS n FROM gone) g
		    WHERE l.queue = q AND g.n < l.next;
	END IF;
	FOR v_round IN 0..1 LOOP -- what the claimer released itself: only when there is nothing else
		FOR v_prio IN SELECT CASE WHEN p_by_prio THEN g ELSE -1 END FROM generate_series(0, CASE WHEN p_by_prio THEN 3 ELSE 0 END) g LOOP
			SELECT * INTO v_low, v_due, v_at FROM low_of(q, v_prio, v_now);
			LOOP
				IF p_by_prio THEN
					SELECT r.ctid, r.id, r.n INTO v_tid, id, v_n FROM ready r WHERE r.queue = q AND r.prio = v_prio AND r.n >= v_low
					    AND (r.only_for IS NULL OR r.only_for = p_agent OR r.only_until <= v_wall)
					    AND (v_round = 1 OR r.released_by IS DISTINCT FROM p_agent) ORDER BY r.n LIMIT 1 FOR UPDATE SKIP LOCKED;
				ELSE
					SELECT r.ctid, r.id, r.n INTO v_tid, id, v_n FROM ready r WHERE r.queue = q AND r.n >= v_low
					    AND (r.only_for IS NULL OR r.only_for = p_agent OR r.only_until <= v_wall)
					    AND (v_round = 1 OR r.released_by IS DISTINCT FROM p_agent) ORDER BY r.n LIMIT 1 FOR UPDATE SKIP LOCKED;
				END IF;
				EXIT WHEN v_tid IS NOT NULL OR v_low = 0 OR NOT v_due;
				v_low := 0; -- nothing above the hint: once in 5 s one looks below it, too
			END LOOP;
			IF v_round = 0 AND v_due AND (v_tid IS NOT NULL OR v_at IS NOT NULL) THEN PERFORM raise_low(q, v_prio, v_n, v_now); END IF;
			EXIT WHEN v_tid IS NOT NULL;
		END LOOP;
		EXIT WHEN v_tid IS NOT NULL;
	END LOOP;
	IF v_tid IS NULL THEN -- nothing was promised: no wait for the disk
		PERFORM set_config('synchronous_commit', 'off', true);
		rc := 1; id := NULL; RETURN;
	END IF;
	IF p_kind = 'p' THEN
		PERFORM pg_advisory_lock(token_lock(p_token));
	ELSE
		v_deadline := v_now + p_lease_ms * interval '1 ms';
	END IF;
	WITH mine AS (DELETE FROM ready r WHERE r.ctid = v_tid RETURNING r.n, r.id, r.prio, r.attempt)
	INSERT INTO claim SELECT p_token, m.id, q, m.n, m.prio, m.attempt + 1, p_agent, p_kind::"char", p_life, v_now, v_deadline,
	    p_session, p_host, p_pid, p_start, p_ns, p_boot FROM mine m RETURNING claim.attempt INTO attempt;
	rc := 0; since_ms := ms(v_now); deadline_ms := coalesce(ms(v_deadline), 0);
END $$;

-- Where to begin, and whether the hint is due to be moved. Every 60th move looks from the start.
CREATE FUNCTION low_of(p_queue int, p_prio smallint, p_now timestamptz, OUT low bigint, OUT due boolean, OUT at timestamptz)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
	v_round int;
BEGIN
	SELECT l.low, l.at, l.round INTO low, at, v_round FROM low l WHERE l.queue = p_queue AND l.prio = p_prio;
	due := at IS NULL OR at < p_now - interval '5 s';
	low := CASE WHEN low IS NULL OR (due AND v_round % 60 = 0) THEN 0 ELSE low END;
END $$;

-- A row that is locked is left alone. p_head NULL: the queue is empty, the hint stays.
CREATE FUNCTION raise_low(p_queue int, p_prio smallint, p_head bigint, p_now timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
BEGIN
	PERFORM 1 FROM low WHERE queue = p_queue AND prio = p_prio AND at < p_now - interval '5 s' FOR UPDATE SKIP LOCKED;
	IF FOUND THEN
		UPDATE low SET low = least(next, coalesce(p_head, next)), next = coalesce(p_head, next), at = p_now, round = round + 1
		WHERE queue = p_queue AND prio = p_prio;
	ELSIF p_head IS NOT NULL THEN
		INSERT INTO low VALUES (p_queue, p_prio, 0, p_head, p_now) ON CONFLICT DO NOTHING;
	END IF;
END $$;

-- p_how: b back to its place, l behind all that waits (no attempt), d done, f failed.
CREATE FUNCTION claim_settle(p_token text, p_id text, p_attempt int, p_how text, p_reason text, p_only_for text, p_only_until bigint, p_again boolean, OUT rc int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
DECLARE
	c claim;
BEGIN
	PERFORM durable();
	PERFORM pg_advisory_xact_lock_shared(@C@, 0);
	DELETE FROM claim WHERE token = p_token AND id = p_id AND attempt = p_attempt RETURNING * INTO c;
	IF NOT FOUND THEN
		rc := CASE WHEN p_again AND EXISTS (SELECT 1 FROM past WHERE id = p_id AND token = p_token AND attempt = p_attempt AND how = p_how::"char") THEN 0 ELSE 2 END;
		RETURN;
	END IF;
	IF @G@ AND NOT (p_how IN ('b', 'f') AND is_over(c.kind, c.token, c.deadline)) THEN PERFORM guard(c.agent); END IF; -- what is over anybody may put back
	INSERT INTO past SELECT p_id, 'queue:' || p.name, p_token, p_attempt, c.agent, c.life, c.since, clock(), p_how::"char", p_reason, p_only_for,
	    CASE WHEN p_only_until > 0 THEN at_ms(p_only_until) END FROM place p WHERE p.place = c.queue;
	rc := 0;
	IF p_how = 'b' THEN
		INSERT INTO ready (queue, n, id, prio, attempt) VALUES (c.queue, c.n, c.id, c.prio, c.attempt);
		UPDATE low SET low = least(low, c.n), next = least(next, c.n) WHERE queue = c.queue AND prio IN (-1, c.prio) AND next > c.n;
	ELSIF p_how = 'l' THEN
		INSERT INTO ready (queue, id, prio, attempt, released, released_by, only_for, only_until)
		    VALUES (c.queue, c.id, c.prio, c.attempt - 1, clock(), c.agent, p_only_for, CASE WHEN p_only_for IS NOT NULL THEN at_ms(p_only_until) END);
	ELSE
		INSERT INTO finished VALUES (c.queue, c.id, p_how = 'f', c.prio, c.attempt, c.agent, clock())
		ON CONFLICT (id, queue) DO UPDATE SET failed = excluded.failed, attempt = excluded.attempt, agent = excluded.agent, at = excluded.at;
	END IF;
END $$;

CREATE FUNCTION claim_extend(p_token text, p_id text, p_attempt int, p_lease_ms bigint, OUT rc int, OUT deadline_ms bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
BEGIN
	PERFORM durable();
	UPDATE claim SET deadline = CASE WHEN kind = 'l' THEN clock() + p_lease_ms * interval '1 ms' ELSE deadline END
	    WHERE token = p_token AND id = p_id AND attempt = p_attempt AND may(agent) RETURNING CASE WHEN kind = 'l' THEN ms(deadline) ELSE 0 END INTO deadline_ms;
	rc := CASE WHEN FOUND THEN 0 ELSE 2 END;
END $$;

-- p_states: 1 ready, 2 delayed, 4 claimed, 8 done, 16 failed. The first row, of state 0, says that the queue is there.
CREATE FUNCTION work(p_queue text, p_states int) RETURNS SETOF held LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
#variable_conflict use_column
DECLARE
	q int := (SELECT place FROM place WHERE kind = 'q' AND name = p_queue);
	v_box text := 'queue:' || p_queue;
	v_wall timestamptz := wall();
BEGIN
	IF q IS NULL THEN RETURN; END IF;
	RETURN NEXT ROW(v_box, NULL, NULL, NULL, 0, 0, 0, NULL, 0, 0, 0, false, 0, 0, 0, NULL, 0, 0, 0, NULL, 0)::held;
	RETURN QUERY SELECT x.* FROM (
	    SELECT v_box, NULL::text, id, NULL::text, 0, attempt::int, prio::int, NULL::text, 0, 0::bigint, 0::bigint, false, 0::bigint, 0::bigint, 0::bigint, NULL::text, 1, 0::bigint,
	        coalesce(ms(released), 0), CASE WHEN only_until > v_wall THEN only_for END, coalesce(ms(only_until), 0)
	        FROM ready WHERE queue = q AND p_states & 1 <> 0
	    UNION ALL SELECT v_box, NULL, id, NULL, 0, 0, prio, NULL, 0, 0, 0, false, 0, 0, 0, NULL, CASE WHEN not_before <= v_wall THEN 1 ELSE 2 END, ms(not_before), 0, NULL, 0
	        FROM delayed WHERE queue = q AND p_states & CASE WHEN not_before <= v_wall THEN 1 ELSE 2 END <> 0
	    UNION ALL SELECT v_box, agent, id, CASE WHEN NOT @G@ OR may(agent) OR is_over(kind, token, deadline) THEN token END, life, attempt, prio, kind::text, 0, ms(since), CASE WHEN kind = 'l' THEN ms(deadline) ELSE 0 END,
	        is_over(kind, token, deadline), pid, pid_start, pid_ns, boot, 4, 0, 0, NULL, 0 FROM claim WHERE queue = q AND p_states & 4 <> 0
	    UNION ALL SELECT v_box, agent, id, NULL, 0, attempt, prio, NULL, 0, 0, 0, false, 0, 0, 0, NULL, CASE WHEN failed THEN 16 ELSE 8 END, 0, 0, NULL, 0
	        FROM finished WHERE queue = q AND p_states & CASE WHEN failed THEN 16 ELSE 8 END <> 0) x ORDER BY 3;
END $$;

CREATE FUNCTION claim_find(p_token text) RETURNS SETOF held LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY SELECT 'queue:' || p.name, c.agent, c.id, c.token, c.life, c.attempt::int, c.prio::int, c.kind::text, 0, ms(c.since),
	    CASE WHEN c.kind = 'l' THEN ms(c.deadline) ELSE 0 END, is_over(c.kind, c.token, c.deadline), c.pid, c.pid_start, c.pid_ns, c.boot, 4, 0::bigint, 0::bigint, NULL::text, 0::bigint
	FROM claim c JOIN place p ON p.place = c.queue WHERE c.token = p_token AND may(c.agent) LIMIT 1;
	IF FOUND THEN RETURN; END IF;
	RETURN QUERY SELECT h.* FROM (SELECT * FROM place WHERE may(name) OFFSET 0) p CROSS JOIN LATERAL holds(p.name) h
	    WHERE p.kind = 'a' AND p.here AND h.token = p_token
	    AND EXISTS (SELECT 1 FROM inbox i WHERE i.place = p.place AND i.kind IS NOT NULL AND i.token = p_token) LIMIT 1;
END $$;

-- By id and box ("": agents' own mail, NULL: all), with p_id NULL by token, or without that all of the box that ended since then.
CREATE FUNCTION claims_past(p_box text, p_id text, p_token text, p_since_ms bigint) RETURNS TABLE (box text, agent text, id text, token text, life int, attempt int,
    since_ms bigint, ended_ms bigint, how text, reason text, only_for text, only_until_ms bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY SELECT x.box, x.agent, x.id, CASE WHEN may(x.agent) THEN x.token ELSE '' END, x.life, x.attempt::int, coalesce(ms(x.since), 0), ms(x.ended), x.how::text, x.reason, x.only_for, coalesce(ms(x.only_until), 0)
	FROM past x WHERE CASE WHEN p_id IS NULL AND p_token IS NULL THEN x.box = p_box AND x.ended >= at_ms(p_since_ms)
	    WHEN p_id IS NULL THEN x.token = p_token ELSE x.id = p_id AND (p_box IS NULL OR x.box = p_box OR (p_box = '' AND NOT starts_with(x.box, 'queue:'))) END
	    AND (NOT @G@ OR may(x.agent) OR (p_token IS NULL AND starts_with(x.box, 'queue:')))
	ORDER BY x.ended;
END $$;

-- A row without n: the channel is there.
CREATE FUNCTION posts(p_channel text, p_after bigint, p_depth int, p_limit int) RETURNS TABLE (n bigint, id text, size int, head bytea, body bytea, author text, content bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY SELECT x.n, x.id, size_of(m.head, m.body, m.content), m.head, CASE WHEN p_depth > 1 THEN m.body END,
	    CASE WHEN @G@ THEN author(m.sender, m.proven) END, m.content
	FROM place p LEFT JOIN LATERAL (SELECT o.n, o.id FROM post o WHERE o.channel = p.place AND o.n > p_after AND o.id IS NOT NULL
	    ORDER BY o.n LIMIT p_limit) x ON true
	LEFT JOIN message m ON m.id = x.id
	WHERE p.kind = 'c' AND p.name = p_channel ORDER BY x.n;
END $$;

CREATE FUNCTION channel_range(p_channel text) RETURNS TABLE (first bigint, last bigint, count bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY SELECT coalesce((SELECT n FROM post WHERE channel = p.place ORDER BY n LIMIT 1), 0),
	    coalesce((SELECT n FROM post WHERE channel = p.place ORDER BY n DESC LIMIT 1), 0),
	    (SELECT count(*) FROM post WHERE channel = p.place)
	FROM place p WHERE p.kind = 'c' AND p.name = p_channel;
END $$;

-- ---------------------------------------------------------------- records

-- A record of an agent is that agent's: others may only leave it a nudge, in their own name. What the room has together (groups, queues,
-- channels) is changed by the login that made it; of a channel everybody may add and take out its own subscriptions. Escalations and
-- the limits of waking are common. All else of the room is the owners'.
CREATE FUNCTION guard_record(p_kind text, p_owner text, p_name text, p_text bytea) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
	v_old record;
	v_there boolean;
	v_from text := substring(convert_from(coalesce(p_text, ''), 'UTF8') FROM '^From: ([^\n]*)');
BEGIN
	IF may('') OR (p_owner <> '' AND p_kind NOT IN ('carried', 'carrying') AND may(p_owner)) THEN RETURN; END IF;
	SELECT r.login, r.text INTO v_old FROM record r WHERE r.kind = p_kind AND r.owner = p_owner AND r.name = p_name;
	v_there := FOUND;
	IF p_kind = 'nudge' AND p_owner <> '' AND (NOT v_there OR v_old.login = session_user) AND (p_text IS NULL OR may(v_from)) THEN RETURN; END IF;
	IF p_owner = '' AND p_kind IN ('group', 'queue', 'channel', 'escalation') AND (NOT v_there OR v_old.login = session_user) THEN RETURN; END IF;
	IF p_owner = '' AND p_kind IN ('escalation', 'wakes', 'probe') AND p_text IS NOT NULL THEN RETURN; END IF;
	IF p_owner = '' AND p_kind = 'probe' THEN RETURN; END IF;
	IF p_kind = 'nudge-state' AND p_text IS NOT NULL THEN RETURN; END IF; -- how many were refused: told by those who nudge
	IF p_owner = '' AND p_kind = 'channel' AND p_text IS NOT NULL AND NOT EXISTS (
	    WITH o AS (SELECT regexp_split_to_table(convert_from(v_old.text, 'UTF8'), '\n') AS line), n AS (SELECT regexp_split_to_table(convert_from(p_text, 'UTF8'), '\n') AS line)
	    SELECT 1 FROM (((TABLE o) EXCEPT (TABLE n)) UNION ((TABLE n) EXCEPT (TABLE o))) d
	    WHERE NOT (starts_with(d.line, 'Subscriber: ') AND may(btrim(substr(d.line, 13))))) THEN RETURN; END IF;
	PERFORM guard(CASE WHEN p_kind IN ('carried', 'carrying') THEN '' ELSE p_owner END);
END $$;

CREATE FUNCTION record_put(p_kind text, p_owner text, p_name text, p_text bytea) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
BEGIN
	PERFORM durable();
	IF @G@ THEN PERFORM guard_record(p_kind, p_owner, p_name, p_text); END IF;
	INSERT INTO record (kind, owner, name, text) VALUES (p_kind, p_owner, p_name, p_text)
	ON CONFLICT (kind, owner, name) DO UPDATE SET text = excluded.text, at = now();
	IF p_owner = '' AND p_kind IN ('queue', 'channel') THEN -- new settings are of a queue or channel that works
		INSERT INTO place (kind, name) VALUES (left(p_kind, 1)::"char", p_name) ON CONFLICT DO NOTHING;
	END IF;
	IF (p_kind = 'escalation' AND p_owner = 'closed' OR p_kind IN ('redispatch', 'dead-done', 'purged') AND p_owner = '') AND random() < 0.1 THEN -- what is over: room_overs
		DELETE FROM record WHERE kind = p_kind AND owner = p_owner AND at < clock() - CASE WHEN p_kind IN ('dead-done', 'purged') THEN interval '366 days' ELSE interval '90 days' END;
	END IF;
	RETURN 0;
END $$;
CREATE FUNCTION record_get(p_kind text, p_owner text, p_name text) RETURNS TABLE (text bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY SELECT r.text FROM record r WHERE r.kind = p_kind AND r.owner = p_owner AND r.name = p_name
	    AND (NOT @G@ OR p_owner = '' OR p_kind IN ('dnd', 'nudge-state') OR r.login = session_user OR may(p_owner));
END $$;
CREATE FUNCTION record_drop(p_kind text, p_owner text, p_name text, p_again boolean, OUT rc int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
BEGIN
	PERFORM durable();
	IF @G@ THEN PERFORM guard_record(p_kind, p_owner, p_name, NULL); END IF;
	DELETE FROM record WHERE kind = p_kind AND owner = p_owner AND name = p_name;
	rc := CASE WHEN FOUND OR p_again THEN 0 ELSE 2 END;
END $$;
CREATE FUNCTION record_each(p_kind text, p_owner text) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY SELECT name FROM record WHERE kind = p_kind AND owner = p_owner
	    AND (NOT @G@ OR p_owner = '' OR login = session_user OR may(p_owner)) ORDER BY name;
END $$;
-- The key of a lock of records. A login that does not act for their owner (nor for the room, whose groups, queues, channels and the
-- like all may change) cannot keep that owner out: it gets a lock of its own, which only keeps its own processes apart.
CREATE FUNCTION lock_key(p_kind text, p_owner text, p_name text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
	IF NOT @G@ OR may(p_owner) OR (p_owner = '' AND p_kind IN ('group', 'queue', 'channel', 'escalation', 'wakes', 'pane')) THEN
		RETURN record_key(p_kind, p_owner, p_name);
	END IF;
	RETURN record_key(p_kind, p_owner, p_name || chr(10) || session_user);
END $$;
-- With p_wait_ms the server waits, not the client. A lock has one holder, also within a session.
CREATE FUNCTION record_lock(p_kind text, p_owner text, p_name text, p_wait_ms int, p_mine boolean, OUT rc int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
DECLARE
	k bigint := lock_key(p_kind, p_owner, p_name);
BEGIN
	rc := 6;
	IF p_mine OR (@G@ AND p_wait_ms = 0 AND k <> record_key(p_kind, p_owner, p_name) AND is_locked(record_key(p_kind, p_owner, p_name))) THEN
		RETURN; -- it may see that another has it: who nudges looks whether the agent waits
	END IF;
	rc := 0;
	IF pg_try_advisory_lock(k) THEN RETURN; END IF;
	rc := 6;
	IF p_wait_ms = 0 THEN RETURN; END IF;
	PERFORM set_config('lock_timeout', p_wait_ms::text, true);
	PERFORM pg_advisory_lock(k);
	rc := 0;
EXCEPTION WHEN lock_not_available THEN
	rc := 6;
END $$;
CREATE FUNCTION record_unlock(p_kind text, p_owner text, p_name text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
BEGIN
	RETURN pg_advisory_unlock(lock_key(p_kind, p_owner, p_name));
END $$;

-- ---------------------------------------------------------------- evidence and care

CREATE FUNCTION places(p_id text) RETURNS TABLE (agent text, folder int, flags int, state text, evidence text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
#variable_conflict use_column
DECLARE
	v_all boolean := NOT @G@ OR EXISTS (SELECT 1 FROM message m JOIN place p ON p.place = m.sender WHERE m.id = p_id AND may(p.name)); -- its sender may know what became of it
BEGIN
	RETURN QUERY
	SELECT p.name, CASE WHEN i.kind IS NULL THEN 1 ELSE 2 END, i.flags::int,
	    CASE WHEN i.kind IS NOT NULL THEN 'held' WHEN i.flags & 1 = 0 THEN 'unread' ELSE 'read' END,
	    CASE WHEN i.kind IS NULL THEN 'in the inbox of ''' || p.name || ''', handed out ' || i.attempt || ' times'
	    ELSE 'held by life ' || i.life || ' of ''' || p.name || ''' on ' || coalesce(nullif(i.host, ''), 'an unknown host') || ' since ' || date_trunc('second', i.since) || ', attempt ' || i.attempt + 1
	        || CASE WHEN i.kind = 'l' THEN ', until ' || date_trunc('second', i.deadline) ELSE ', while its connection lives' END END
	    FROM place p JOIN inbox i ON i.place = p.place AND i.id = p_id WHERE p.kind = 'a' AND (v_all OR may(p.name))
	UNION ALL SELECT p.name, 4, a.flags, 'archived', 'in the archive of ''' || p.name || '''' FROM place p JOIN archive a ON a.place = p.place AND a.id = p_id WHERE p.kind = 'a' AND (v_all OR may(p.name))
	UNION ALL SELECT p.name, 8, 1, 'sent', 'in the sent mail of ''' || p.name || '''; login ' || m.login || CASE WHEN m.proven THEN ' (proven), ' ELSE ', ' END || date_trunc('second', m.at) FROM message m JOIN place p ON p.place = m.sender WHERE m.id = p_id AND (v_all OR may(p.name))
	UNION ALL SELECT '', 16, d.flags, 'dead', 'a dead letter since ' || date_trunc('second', d.at) || ', meant for ' || d.whose FROM dead d WHERE d.id = p_id AND (v_all OR may(d.whose))
	UNION ALL SELECT '', 0, 0, 'ready', 'in queue ''' || p.name || ''': ready, claimed ' || r.attempt || ' times' || CASE WHEN r.only_until > wall() THEN
	    ', only for ''' || r.only_for || ''' until ' || to_char(r.only_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') ELSE '' END FROM ready r JOIN place p ON p.place = r.queue WHERE r.id = p_id
	UNION ALL SELECT '', 0, 0, 'delayed', 'in queue ''' || p.name || ''' not before ' || d.not_before FROM delayed d JOIN place p ON p.place = d.queue WHERE d.id = p_id
	UNION ALL SELECT '', 0, 0, 'claimed', 'in queue ''' || p.name || ''': claimed by life ' || c.life || ' of ''' || c.agent || ''' since ' || date_trunc('second', c.since) || ', attempt ' || c.attempt FROM claim c JOIN place p ON p.place = c.queue WHERE c.id = p_id
	UNION ALL SELECT '', 0, 0, CASE WHEN f.failed THEN 'failed' ELSE 'done' END, 'in queue ''' || p.name || ''': by ''' || f.agent || ''' at ' || date_trunc('second', f.at) FROM finished f JOIN place p ON p.place = f.queue WHERE f.id = p_id
	UNION ALL SELECT '', 0, 0, 'posted', 'in channel ''' || p.name || ''': post ' || o.n FROM post o JOIN place p ON p.place = o.channel WHERE o.id = p_id;
END $$;

-- p_what: 0 every copy of p_id, 1 a dead letter, or failed work of the queue p_box, 2 posts of the channel p_box below p_below.
CREATE FUNCTION remove(p_what int, p_box text, p_id text, p_below bigint, p_again boolean, OUT rc int, OUT removed int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
DECLARE
	v_place int;
	v_max bigint;
BEGIN
	PERFORM durable();
	PERFORM pg_advisory_xact_lock_shared(@C@, 0);
	rc := 0;
	IF p_what = 0 THEN
		PERFORM guard('');
		WITH i AS (DELETE FROM inbox WHERE id = p_id AND place IN (SELECT place FROM place) RETURNING 1),
		a AS (DELETE FROM archive WHERE id = p_id AND place IN (SELECT place FROM place) RETURNING 1),
		s AS (SELECT 1 FROM message WHERE id = p_id AND sender IS NOT NULL),
		d AS (DELETE FROM dead WHERE id = p_id RETURNING 1),
		r AS (DELETE FROM ready WHERE id = p_id RETURNING 1),
		e AS (DELETE FROM delayed WHERE id = p_id RETURNING 1),
		c AS (DELETE FROM claim WHERE id = p_id RETURNING 1),
		f AS (DELETE FROM finished WHERE id = p_id RETURNING 1),
		o AS (UPDATE post SET id = NULL WHERE id = p_id RETURNING 1)
		SELECT (SELECT count(*) FROM i) + (SELECT count(*) FROM a) + (SELECT count(*) FROM s) + (SELECT count(*) FROM d) + (SELECT count(*) FROM r)
		    + (SELECT count(*) FROM e) + (SELECT count(*) FROM c) + (SELECT count(*) FROM f) + (SELECT count(*) FROM o) INTO removed;
		DELETE FROM message WHERE id = p_id;
		DELETE FROM chunk WHERE id = p_id;
	ELSIF p_what = 1 THEN
		IF p_box = '' THEN
			DELETE FROM dead WHERE id = p_id AND may(whose);
		ELSE
			PERFORM guard_box('queue', p_box);
			DELETE FROM finished WHERE queue = (SELECT place FROM place WHERE kind = 'q' AND name = p_box) AND id = p_id AND failed;
		END IF;
		GET DIAGNOSTICS removed = ROW_COUNT;
		rc := CASE WHEN removed > 0 OR p_again THEN 0 ELSE 2 END;
	ELSE
		PERFORM guard_box('channel', p_box);
		SELECT place INTO v_place FROM place WHERE kind = 'c' AND name = p_box;
		IF v_place IS NULL THEN rc := 2; removed := 0; RETURN; END IF;
		PERFORM pg_advisory_xact_lock(@C@, v_place);
		WITH d AS (DELETE FROM post WHERE channel = v_place AND n < p_below RETURNING n) SELECT count(*), max(n) INTO removed, v_max FROM d;
		UPDATE place SET last = v_max WHERE place = v_place AND last < v_max;
	END IF;
END $$;

-- ---------------------------------------------------------------- retention

-- The time of an id: its first ten characters, five bits each.
CREATE FUNCTION id_time(p_id text) RETURNS timestamptz LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	v_ms bigint := 0;
BEGIN
	FOR i IN 1..10 LOOP v_ms := v_ms * 32 + greatest(position(substr(p_id, i, 1) IN '0123456789abcdefghjkmnpqrstvwxyz') - 1, 0); END LOOP;
	RETURN to_timestamp(v_ms / 1000.0);
END $$;

-- The smallest id of that time.
CREATE FUNCTION id_at(p_at timestamptz) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	v_ms bigint := ms(p_at);
	v_id text := '';
BEGIN
	FOR i IN 1..10 LOOP v_id := substr('0123456789abcdefghjkmnpqrstvwxyz', (v_ms % 32)::int + 1, 1) || v_id; v_ms := v_ms / 32; END LOOP;
	RETURN v_id || '0000000000000000';
END $$;

-- Notes that a shelf was looked at, and whether more is to go.
CREATE FUNCTION looked_at(p_shelf text, p_more boolean) RETURNS void LANGUAGE sql AS $$
	INSERT INTO record (kind, owner, name, text, at) VALUES ('kept', '', 'look-' || p_shelf, CASE WHEN p_more THEN 'more' ELSE 'all' END::bytea, clock_timestamp())
	ON CONFLICT (kind, owner, name) DO UPDATE SET text = excluded.text, at = excluded.at
$$;

-- Removes what the room's settings do not keep, a little of each shelf that is due: returns how much. Any login may call it: the settings
-- are the owners', and nothing here comes from the caller.
CREATE FUNCTION retain() RETURNS int LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
DECLARE
	v_due record;
	v_n int := 0;
BEGIN
	PERFORM durable();
	IF NOT pg_try_advisory_xact_lock(record_key('kept', '', 'look')) THEN RETURN 0; END IF;
	FOR v_due IN SELECT * FROM shelves_due() LOOP
		v_n := v_n + CASE v_due.shelf WHEN 'rows' THEN old_rows() ELSE retain_shelf(v_due.shelf, v_due.setting, v_due.value, wall()) END;
	END LOOP;
	RETURN v_n;
END $$;

-- Removes at most 500 messages of a shelf (archive, sent, done, dead) that the setting p_value does not keep: a time, a number, or a size of each mailbox and queue by itself,
-- and nothing of the last day. The rules are those of the native room: unread and pinned mail and open questions stay, a setting counts from its
-- second day on, and what goes is written down first, by the month, for `why`.
CREATE FUNCTION retain_shelf(p_shelf text, p_setting text, p_value text, p_now timestamptz) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
DECLARE
	v_unit text := "right"(p_value, 1);
	v_most numeric := substring(p_value FROM '^([0-9]{1,13})[hdwKMGT]?$')::numeric;
	v_day text := id_at(p_now - interval '1 day');
	v_before text := id_at(p_now);
	v_box record;
	v_from text;
	v_cut text;
	v_ids text[];
	v_all text[] := '{}';
BEGIN
	IF v_most IS NULL THEN RETURN 0; END IF; -- 'all'
	IF v_unit IN ('h', 'd', 'w') THEN
		v_before := id_at(p_now - least(v_most, 1000000)::int * CASE v_unit WHEN 'h' THEN interval '1 hour' WHEN 'd' THEN interval '1 day' ELSE interval '7 days' END);
	END IF;
	v_most := v_most * 1024 ^ position(v_unit IN 'KMGT');
	FOR v_box IN SELECT p.place, p.name, p.kind FROM place p WHERE p.kind = CASE WHEN p_shelf IN ('archive', 'sent') THEN 'a'::"char" ELSE 'q' END
	    UNION ALL SELECT 0, '', 'd'::"char" WHERE p_shelf = 'dead' LOOP
		EXIT WHEN cardinality(v_all) >= 500;
		v_from := CASE WHEN p_shelf = 'archive' THEN 'archive WHERE place = $1 AND flags & 5 = 1' WHEN p_shelf = 'sent' THEN 'message WHERE sender = $1'
		    WHEN p_shelf = 'done' THEN 'finished WHERE queue = $1 AND NOT failed' WHEN v_box.kind = 'q' THEN 'finished WHERE queue = $1 AND failed'
		    ELSE 'dead WHERE $1 = 0' END;
		v_cut := v_before;
		IF v_unit ~ '[0-9]' THEN
			EXECUTE 'SELECT id FROM ' || v_from || ' ORDER BY id DESC OFFSET $2 LIMIT 1' INTO v_cut USING v_box.place, v_most;
		ELSIF v_unit IN ('K', 'M', 'G', 'T') THEN
			EXECUTE 'SELECT max(id) FROM (SELECT x.id, sum((SELECT size_of(m.head, m.body, m.content) FROM message m WHERE m.id = x.id)) OVER (ORDER BY x.id DESC) AS bytes '
			    'FROM (SELECT id FROM ' || v_from || ') x) y WHERE bytes > $2' INTO v_cut USING v_box.place, v_most;
		END IF;
		EXECUTE 'SELECT array_agg(id) FROM (SELECT id FROM ' || v_from || ' AND id <= $2 AND id < $3 AND NOT EXISTS (SELECT 1 FROM record r WHERE r.kind = ''due'' AND r.name = id)'
		    ' ORDER BY id LIMIT $4) x' INTO v_ids USING v_box.place, v_cut, v_day, 500 - cardinality(v_all);
		IF v_ids IS NULL THEN CONTINUE; END IF;
		v_all := v_all || v_ids;
		IF p_shelf = 'archive' THEN
			DELETE FROM archive WHERE place = v_box.place AND id = ANY (v_ids);
		ELSIF p_shelf = 'sent' THEN
			UPDATE message SET sender = NULL WHERE sender = v_box.place AND id = ANY (v_ids);
		ELSIF v_box.kind = 'q' THEN
			DELETE FROM finished WHERE queue = v_box.place AND id = ANY (v_ids);
			DELETE FROM past WHERE id = ANY (v_ids) AND box = 'queue:' || v_box.name;
		ELSE
			DELETE FROM dead WHERE id = ANY (v_ids);
		END IF;
	END LOOP;
	PERFORM looked_at(p_shelf, cardinality(v_all) >= 500);
	IF v_all = '{}' THEN RETURN 0; END IF;
	INSERT INTO record (kind, owner, name, text) SELECT 'kept', '', p_shelf, convert_to(string_agg('Removed: ' || l.line || chr(10), '' ORDER BY l.line DESC), 'UTF8') FROM
	    (SELECT DISTINCT ON ("left"(u.line, 7)) u.line FROM
	        (SELECT to_char(min(id_time(i)) AT TIME ZONE 'UTC', 'YYYY-MM') || ' ' || to_char(clock() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || ' '
	                || to_char(max(id_time(i)) AT TIME ZONE 'UTC' + interval '1 ms', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || ' ' || p_value AS line, 0 AS old
	            FROM unnest(v_all) AS t(i) GROUP BY date_trunc('month', id_time(i) AT TIME ZONE 'UTC')
	         UNION ALL SELECT substr(o.line, 10), 1 FROM record r, regexp_split_to_table(convert_from(r.text, 'UTF8'), '\n') AS o(line)
	            WHERE r.kind = 'kept' AND r.owner = '' AND r.name = p_shelf AND o.line <> '') u ORDER BY "left"(u.line, 7) DESC, u.old LIMIT 60) l
	ON CONFLICT (kind, owner, name) DO UPDATE SET text = excluded.text, at = now();
	-- the text goes with the last copy
	WITH gone AS (DELETE FROM message m WHERE m.id = ANY (v_all) AND m.sender IS NULL
	    AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.id = m.id AND i.place IN (SELECT place FROM place))
	    AND NOT EXISTS (SELECT 1 FROM archive a WHERE a.id = m.id AND a.place IN (SELECT place FROM place))
	    AND NOT EXISTS (SELECT 1 FROM dead d WHERE d.id = m.id) AND NOT EXISTS (SELECT 1 FROM ready r WHERE r.id = m.id)
	    AND NOT EXISTS (SELECT 1 FROM delayed d WHERE d.id = m.id) AND NOT EXISTS (SELECT 1 FROM claim c WHERE c.id = m.id)
	    AND NOT EXISTS (SELECT 1 FROM finished f WHERE f.id = m.id) AND NOT EXISTS (SELECT 1 FROM post o WHERE o.id = m.id) RETURNING m.id)
	DELETE FROM chunk c USING gone WHERE c.id = gone.id;
	RETURN cardinality(v_all);
END $$;

-- What a room costs: the shelves that settings limit, then each table with its indexes, as the statistics of the server have them.
CREATE FUNCTION costs() RETURNS TABLE (what text, n bigint, bytes bigint) LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
#variable_conflict use_column
DECLARE
	v_row bigint := (SELECT greatest((pg_total_relation_size('@S@.message') + pg_total_relation_size('@S@.chunk')) / greatest(reltuples, 1), 0)::bigint FROM pg_class WHERE oid = '@S@.message'::regclass);
BEGIN
	RETURN QUERY
	SELECT x.what, x.n, x.n * CASE WHEN x.what = 'records' THEN 0 ELSE v_row END FROM (
	    SELECT 1 AS o, 'archive' AS what, (SELECT count(*) FROM archive) AS n UNION ALL SELECT 2, 'sent', (SELECT count(*) FROM message WHERE sender IS NOT NULL)
	    UNION ALL SELECT 3, 'done', (SELECT count(*) FROM finished WHERE NOT failed) UNION ALL
	    SELECT 4, 'dead', (SELECT count(*) FROM dead) + (SELECT count(*) FROM finished WHERE failed) UNION ALL SELECT 5, 'records', (SELECT count(*) FROM record)) x ORDER BY x.o;
	RETURN QUERY SELECT 'table ' || t.relname, t.n_live_tup, pg_total_relation_size(t.relid) FROM pg_stat_user_tables t WHERE t.schemaname = '@S@'
	    ORDER BY pg_total_relation_size(t.relid) DESC;
	RETURN QUERY SELECT 'dead rows of ' || t.relname, t.n_dead_tup, 0::bigint FROM pg_stat_user_tables t WHERE t.schemaname = '@S@'
	    AND t.relname IN ('inbox', 'ready', 'delayed', 'claim', 'record') AND t.n_dead_tup > 0 ORDER BY 2 DESC;
	RETURN QUERY SELECT 'seconds of the oldest transaction', s.value, 0::bigint FROM state() s WHERE s.name = 'oldest_snapshot_s';
	RETURN QUERY SELECT 'ms that ' || r.application_name || ' lags', (extract(epoch FROM r.replay_lag) * 1000)::bigint,
	    coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), r.replay_lsn), 0)::bigint FROM pg_stat_replication r WHERE r.state IS NOT NULL;
END $$;

-- For doctor: what the owner should know.
CREATE FUNCTION state() RETURNS TABLE (name text, value bigint) LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY
	SELECT 'messages', greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = '@S@.message'::regclass UNION ALL
	SELECT 'bytes', sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c WHERE c.relnamespace = '@S@'::regnamespace AND c.relkind = 'r' UNION ALL
	SELECT 'oldest_snapshot_s', coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::bigint FROM pg_stat_activity
	    WHERE backend_xmin IS NOT NULL AND datname = current_database() AND pid <> pg_backend_pid() UNION ALL
	SELECT 'dead_rows', coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables WHERE schemaname = '@S@' AND relname IN ('inbox', 'ready', 'delayed', 'claim') UNION ALL
	SELECT 'connections', (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') UNION ALL
	SELECT 'connections_max', current_setting('max_connections')::bigint UNION ALL
	SELECT 'lost_copies', (SELECT count(*) FROM (SELECT id FROM inbox UNION ALL SELECT id FROM ready UNION ALL SELECT id FROM claim UNION ALL SELECT id FROM delayed) x
	    WHERE NOT EXISTS (SELECT 1 FROM message m WHERE m.id = x.id));
END $$;

-- Keys and the past of leases that nobody will ask for any more, at most a thousand rows of each.
CREATE FUNCTION old_rows() RETURNS int LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
DECLARE
	a int;
	b int;
BEGIN
	DELETE FROM sendkey WHERE ctid = ANY (ARRAY(SELECT ctid FROM sendkey WHERE at < clock() - interval '7 days' LIMIT 1000));
	GET DIAGNOSTICS a = ROW_COUNT;
	DELETE FROM past WHERE ctid = ANY (ARRAY(SELECT ctid FROM past WHERE ended < clock() - interval '90 days' LIMIT 1000));
	GET DIAGNOSTICS b = ROW_COUNT;
	PERFORM looked_at('rows', greatest(a, b) >= 1000);
	RETURN a + b;
END $$;
-- For doctor: those, and pieces of bodies that nobody sent.
CREATE FUNCTION tidy() RETURNS int LANGUAGE plpgsql SECURITY DEFINER SET search_path = @S@, pg_temp AS $$
BEGIN
	PERFORM guard('');
	DELETE FROM chunk WHERE ctid = ANY (ARRAY(SELECT c.ctid FROM chunk c WHERE NOT EXISTS (SELECT 1 FROM message m WHERE m.id = c.id) LIMIT 1000));
	RETURN old_rows();
END $$;

REVOKE ALL ON ALL TABLES IN SCHEMA @S@ FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA @S@ FROM PUBLIC;

-- What another login may call: nothing that is not on this list, and no table.
DO $$
DECLARE
	v_users name := (SELECT users FROM room);
	f regprocedure;
BEGIN
	IF v_users IS NULL THEN RETURN; END IF;
	EXECUTE format('GRANT USAGE ON SCHEMA @S@ TO %I', v_users);
	FOR f IN SELECT oid FROM pg_proc WHERE pronamespace = '@S@'::regnamespace AND proname IN ('settled', 'hello', 'agents', 'agent_add', 'life_take',
	    'agent_update', 'life_newest', 'life_seen', 'agent_remove', 'send', 'send_many', 'chunk', 'send_long', 'content', 'poke', 'watch', 'watch_room', 'unwatch', 'scan', 'mail_fetch', 'mark', 'hold',
	    'settle', 'extend', 'holds', 'sweep', 'rehold', 'place_make', 'place_remove', 'claim', 'claim_settle', 'claim_extend', 'work', 'claim_find',
	    'claims_past', 'hold_many', 'settle_many', 'posts', 'channel_range', 'record_put', 'record_get', 'record_drop', 'record_each', 'record_lock', 'record_unlock', 'places',
	    'remove', 'state', 'tidy', 'retain', 'costs') LOOP
		EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', f, v_users);
	END LOOP;
END $$;
