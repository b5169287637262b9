/* SPDX-License-Identifier: MIT */
/*
 * mailroom.h - the public face of libmailroom: mail for AI agents on plain files.
 *
 * How it is used:
 *
 *	struct mr_error err = { 0 };
 *	struct mr_room *room = NULL;
 *	if (mr_room_open("maildir:/srv/town/.mailroom", NULL, &room, &err) != MR_OK)
 *		... err.message says what failed, err.hint what to do next
 *	struct mr_self self = { 0 };
 *	mr_self_named(room, "alice", &self, &err);
 *	struct mr_draft draft = { .to = (const char *[]){ "bob", NULL }, .body = "hi", .body_len = 2 };
 *	struct mr_receipt receipt = { 0 };
 *	mr_send(room, &self, &draft, &receipt, &err);     on MR_OK the mail is on stable storage
 *	mr_receipt_done(&receipt);
 *	mr_room_close(room);
 *
 * Rules of the whole interface:
 * - A result in a ret_ parameter is yours: finish it with the _done, _free or _close of its kind. A
 *   pointer that is returned or passed to a callback is borrowed. Arguments stay yours.
 * - A list, struct { void *own; ITEM *v; size_t n; }, holds things whose number is small: agents, tokens, types. It is
 *   sorted. mr_list_done finishes a list of any item. Messages, which may be many, are streamed to a callback.
 * - ret_ parameters are untouched on failure unless the function says otherwise. Destructors accept NULL and zeroed
 *   objects.
 * - Every function that can fail returns enum mr_rc and fills in the struct mr_error on your stack.
 * - The library never prints, never exits and never reads the environment. It is single-threaded per room handle; open
 *   one handle in each thread.
 * - Text is UTF-8. Times are milliseconds since 1970 UTC unless a name says otherwise.
 *
 * mailroom-town.h has what Gas Town adds to mail: groups, queues, channels, types, nudges, patrols, escalations.
 * mailroom-hooks.h has what the hooks of a harness need.
 */
#ifndef MAILROOM_H
#define MAILROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__cplusplus) && __cplusplus >= 201703L
#define MR_NODISCARD [[nodiscard]]
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ > 201710L
#define MR_NODISCARD [[nodiscard]]
#else
#define MR_NODISCARD
#endif

#if defined(__GNUC__)
#define MR_API __attribute__((visibility("default")))
#define MR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define MR_API
#define MR_PRINTF(fmt, args)
#endif

/* ---- Results ---- */

enum MR_NODISCARD mr_rc { /* named after the action that is left to the caller */
	MR_OK = 0,
	MR_EMPTY,       /* nothing to return: no mail, queue empty, wait timed out */
	MR_NOTFOUND,    /* no such message, agent, group, room */
	MR_REFUSED,     /* a rule of mailroom or of the room forbids it: change the request */
	MR_UNTRUSTED,   /* the room was found, not named, and this user does not trust it: see mr_trust_add */
	MR_UNSUPPORTED, /* this kind of room cannot do that */
	MR_EXISTS,      /* that name is taken: pick another */
	MR_BUSY,        /* another process or agent holds it: try again */
	MR_INDOUBT,     /* accepted in part, will be completed: repeat it only with a key */
	MR_FULL,        /* no space or quota: nothing was delivered */
	MR_CORRUPT,     /* the bytes break the format: kept, reported, skipped */
	MR_NOMEM,       /* out of memory: state is as before the call */
	MR_IO,          /* the kernel reported an error: see sys_errno */
	MR_STOPPED,     /* mr_progress_fn stopped it: nothing is half done */
};

struct mr_error { /* { 0 } means no error; never pass NULL for it */
	enum mr_rc code;
	int sys_errno;
	char message[320];
	char hint[240]; /* what to do next, or "" */
};

/* A short lower-case word for a result: "ok", "not-found", ... Used as "code" in JSON errors. */
MR_API const char *mr_rc_word(enum mr_rc rc);

#define MR_LIST(name, item)                                                                                            \
	struct name {                                                                                                  \
		void *own;                                                                                             \
		item *v;                                                                                               \
		size_t n;                                                                                              \
	}
/* Finishes any list of this interface. */
MR_API void mr_list_done(void *list);

/* ---- Messages ---- */

#define MR_ID_LEN 26
#define MR_ADDRESS_MAX 160
#define MR_TOKEN_LEN 12
#define MR_BODY_MAX ((size_t)16 << 20)
#define MR_ATTACH_MAX ((uint64_t)64 << 20)

enum mr_priority { MR_LOW = -1, MR_NORMAL = 0, MR_HIGH = 1, MR_URGENT = 2 };

enum mr_flag { /* state of one recipient's copy; lives in the file name */
	MR_SEEN = 1,
	MR_REPLIED = 2,
	MR_PINNED = 4,
	MR_TRASHED = 8,
	MR_ACKED = 16, /* finished with `done` */
};

enum mr_folder {      /* bits, so that a scan can ask for several */
	MR_INBOX = 1, /* new/ and cur/, not held */
	MR_HELD = 2,  /* being shown or worked on */
	MR_ARCHIVE = 4,
	MR_SENT = 8,
	MR_DEAD = 16, /* dead letters of the room; the agent is ignored */
};

struct mr_names {
	char **v;
	size_t n;
};

struct mr_header {
	const char *name;
	const char *value; /* unfolded, encoded words decoded, no line break */
};

enum mr_proof { /* is `from` the true sender? Checked where several users share a room or its database checks logins */
	MR_PROOF_NONE, /* the room is not shared */
	MR_PROVEN,     /* the file belongs to the sender's user, or the database checked the login */
	MR_UNPROVEN,   /* it does not, or that cannot be told: any user may have written it */
};

struct mr_attachment {             /* a part of a message other than its text */
	const char *name;          /* as the sender wrote it, one line, "" for none: do not use it as a path */
	const char *type;          /* "image/png" */
	uint64_t size_bytes;       /* decoded */
	uint64_t at, stored_bytes; /* where it is in the stored message, */
	int encoding;              /* and its encoding: for mr_attachment_save */
};
struct mr_content; /* a stored body, of which only the text is in memory */

struct mr_message { /* one recipient's view of a message; all strings belong to it */
	char id[MR_ID_LEN + 1];
	const char *from; /* never NULL, like all strings here; "" when missing */
	struct mr_names to, cc;
	const char *subject;
	int64_t date_ms;
	const char *type;
	bool type_by_subject; /* only the subject shows the type */
	enum mr_priority priority;
	const char *thread;   /* id or word; a message that starts a thread: its own id (foreign mail: Message-ID) */
	const char *reply_to; /* id of the message answered, or "" */
	const char *replace_key;
	unsigned sender_life;  /* 0: unknown */
	enum mr_proof proof;   /* of from */
	int64_t by_ms;         /* an answer is wanted by then; 0: no time set */
	int64_t not_before_ms; /* work: not to be claimed earlier; 0: at once */
	unsigned flags;        /* enum mr_flag */
	enum mr_folder folder;
	unsigned attempt;    /* how often it was claimed and not released; held mail: this claim included */
	int64_t released_ms; /* when its last holder released it; 0: never */
	bool look;           /* in a list of names: the message must be opened to find its place in the order */
	char token[MR_TOKEN_LEN + 1]; /* of the claim, if it is held under a lease */
	const char *body;             /* decoded; NULL when only headers were asked for */
	size_t body_len;
	const struct mr_attachment *attachments; /* filled in together with the body */
	size_t attachments_n;
	struct mr_content *content;      /* the stored form of a body that has more than text; NULL: text only */
	size_t size_bytes;               /* of the stored message */
	const struct mr_header *headers; /* all of them, in order */
	size_t headers_n;
	const struct mr_header
	    *envelope; /* lines of the stored format that no field here holds; not copied to other rooms */
	size_t envelope_n;
	size_t place;     /* number in a file that holds a whole inbox, from 1, non-messages counted too; 0: none */
	const char *path; /* where it is, relative to the room; for people, not for parsing */
	void *own;        /* the memory of the strings */
};

MR_API void mr_message_done(struct mr_message *msg);
/* The value of the first header of that name (any case), or NULL. */
MR_API const char *mr_message_header(const struct mr_message *msg, const char *name);
/* Reads a message as other mail programs write it. The file must stay open and unchanged until mr_message_done.
 * Addresses that end in @`name`, the name of the room, lose that end; "" for none. */
MR_API enum mr_rc mr_message_read(int fd, const char *name, struct mr_message *ret, struct mr_error *err);
/* Decodes attachment number i of a fetched message into a new file in that folder. The name of the file is made safe
 * (no path, no leading dot or dash, nothing invisible), and made unique if it is taken. MR_NOTFOUND: there is no such
 * attachment. */
#define MR_FILE_NAME_MAX 255
MR_API enum mr_rc mr_attachment_save(
    const struct mr_message *msg, size_t i, int dir_fd, char ret_name[MR_FILE_NAME_MAX + 1], struct mr_error *err);
MR_API const char *mr_priority_word(enum mr_priority priority);
MR_API enum mr_rc mr_priority_parse(const char *word, enum mr_priority *ret, struct mr_error *err);

/* ---- Rooms ---- */

struct mr_room; /* an open room of any kind */
struct mr_init_options;
struct mr_env;

typedef void mr_trace_fn(void *ctx, const char *line);

struct mr_room_options {    /* { 0 } is the default */
	mr_trace_fn *trace; /* called for every operation of the room, with one line */
	void *trace_ctx;
	bool no_recover; /* do not complete what commands that crashed left behind */
	bool no_index;   /* read all mail even if the room has an index */
	bool must_exist; /* MR_NOTFOUND even if the first message would create the place */
	bool found;      /* the room was not named but found (mr_place.found): MR_UNTRUSTED unless the user trusts it */
	const char *state_dir;   /* where mailroom may keep files of its own (copies of broken files), or NULL */
	const char *config_dir;  /* the user's configuration: trusted rooms and what they may start; NULL: none */
	const char *trust_paths; /* paths of further trusted rooms, separated by ":"; or NULL */
	const char *data_dir; /* the data files of mailroom (types/PACK/TYPE): the first folder that exists of several,
				 separated by ":"; "@/..." is relative to the folder of this program; NULL: none */
	const char *pool;     /* a room in a database: a pool for short connections, as a libpq string; or NULL */
	const struct mr_env *env;       /* a hint for distant rooms: who will act; or NULL */
	const struct mr_names *expects; /* a hint: names, ids and tokens that will be asked for; or NULL */
	const struct mr_init_options
	    *init; /* set only by mr_room_init, for rooms that are not folders: create the room */
};

/* Opens a room. spec is KIND:WHERE or a path (then the kind is maildir). On MR_OK *ret_room is yours: mr_room_close it.
 * MR_NOTFOUND: there is no room there. MR_UNTRUSTED: see mr_room_options.found. MR_REFUSED: the spec is wrong.
 * MR_UNSUPPORTED: this program cannot open that kind. */
MR_API enum mr_rc mr_room_open(
    const char *spec, const struct mr_room_options *options, struct mr_room **ret_room, struct mr_error *err);
MR_API void mr_room_close(struct mr_room *room);
MR_API const char *mr_room_name(const struct mr_room *room);
MR_API const char *mr_room_spec(const struct mr_room *room); /* "maildir:/path/.mailroom" */
MR_API const char *mr_room_kind(const struct mr_room *room);
/* The environment variable that names the agent for programs of that kind of room; NULL: none. */
MR_API const char *mr_spec_agent_variable(const char *spec);
enum mr_has { /* what a room may have, as bits */
	MR_HAS_NAMES =
	    1, /* its mail names its recipient. A plain Maildir's does not: it needs mr_export_options.agent */
	MR_HAS_LIVES = 2, /* its agents have lives, processes and times of last use; other programs' rooms lack them */
	MR_HAS_REGISTRY = 4,   /* agents can register in it */
	MR_HAS_INDEX = 8,      /* mr_index_update made one */
	MR_HAS_PACKS = 16,     /* some of its mail was packed: mr_pack */
	MR_HAS_LINKS = 32,     /* links to other rooms that the user's configuration allows */
	MR_HAS_FAR_LINKS = 64, /* such links to rooms of a kind that only mailroom-full opens */
};
/* Does it have any of these (enum mr_has)? */
MR_API bool mr_room_has(struct mr_room *room, unsigned what);
/* MR_UNSUPPORTED: the room has none of these folders (enum mr_folder). */
MR_API enum mr_rc mr_room_folders(const struct mr_room *room, unsigned folders, struct mr_error *err);
/* A sentence for each thing that commands on this handle had to leave out because another user of a shared room denies
 * access. Borrowed. */
MR_API const struct mr_names *mr_room_barred(const struct mr_room *room);
/* The value of a line of the room's settings, or NULL. */
MR_API const char *mr_room_setting(const struct mr_room *room, const char *name);

struct mr_storage { /* what a power cut may destroy here, as far as the kernel tells */
	char file_system[32];
	bool power_safe;
	char reason[160]; /* why it is not power_safe */
	char sync[8]; /* how accepted mail is made durable: "full", "fast", "none"; "": the kind has no such choice */
	char sync_reason[160]; /* why, if the room's settings leave it open (Sync: auto or fast) */
	char copies[160];      /* the copies of accepted mail, in a sentence; "": the kind keeps files */
	bool one_copy;         /* the server holds the only copy */
};
MR_API enum mr_rc mr_room_storage(struct mr_room *room, struct mr_storage *ret, struct mr_error *err);

struct mr_place {       /* how a room was found; finish with mr_place_done */
	char *spec;     /* of the room to use */
	char *why;      /* how it was found: "--room", "$MAILROOM", "nearest .mailroom above /a/b", ... */
	char *warning;  /* a second room on the way, a room that git tracks, ...; NULL: none */
	char *worktree; /* top of the git worktree of cwd, else cwd */
	bool found;     /* it was not named but found: pass this on as mr_room_options.found */
	bool tracked;   /* git has it in its index (looked up only with `warns`) */
};
/* Finds the room to use: `option`, else `env`, else the nearest one above cwd or above git's main worktree. option, env
 * and cwd may be NULL; cwd is then the working folder of the process. `warns`: look also for what only causes a
 * warning; without it the worktree may stay NULL. MR_NOTFOUND: none; the hint says to run init. */
MR_API enum mr_rc mr_room_find(
    const char *option, const char *env, const char *cwd, bool warns, struct mr_place *ret, struct mr_error *err);
/* Fills in the worktree of the working folder if mr_room_find left it out. */
MR_API enum mr_rc mr_place_worktree(struct mr_place *place, struct mr_error *err);
MR_API void mr_place_done(struct mr_place *place);

struct mr_init_options {
	const char *name; /* of the room; NULL: the folder's name */
	bool share_group;
	const char *sync;           /* "auto" (NULL), "full", "fast", "none" */
	const char *config_dir;     /* where to record that this user made the room and trusts it; NULL: nowhere */
	struct mr_error *ret_trust; /* NULL, or set to MR_OK or to the reason why the room is not trusted */
	bool upgrade;               /* a room in a database: upgrade it to this version */
	const char *roles; /* a room in a database: "LOGIN=AGENT,...": logins that act for some agents; or NULL */
};
/* Makes a room in `where`, a folder or "postgres:..." (NULL: the main worktree of cwd's repository, else cwd).
 * *ret_path is the caller's to free. MR_EXISTS: the room exists, and *ret_path is filled in all the same. */
MR_API enum mr_rc mr_room_init(
    const char *where, const char *cwd, const struct mr_init_options *options, char **ret_path, struct mr_error *err);

/* ---- Trust, and the user's configuration ----
 *
 * A room is data: no file in it can start a program or touch another room. Only the user's configuration can: one file
 * of "Name: value" lines for each room. It counts only for the very folder that it was written for: path, device, inode
 * and the identity that init wrote into the folder must all match. mailroom-config(5) lists the names. */

enum mr_trust {
	MR_TRUST_NONE,
	MR_TRUST_NAMED,    /* --room or $MAILROOM named it: it is read and written, but starts nothing */
	MR_TRUST_VARIABLE, /* mr_room_options.trust_paths has its path */
	MR_TRUST_USER,     /* mr_trust_add */
	MR_TRUST_INIT,     /* this user's init made it here */
};
MR_API const char *mr_trust_word(enum mr_trust trust);
/* Why this room is used. *ret_since_ms: since when it is trusted, 0 if that is not recorded. */
MR_API enum mr_trust mr_room_trust(struct mr_room *room, int64_t *ret_since_ms);
/* Trusts this room from now on. If an earlier record has the same identity and the room of that record is gone, then
 * this room was moved, and the settings of that record go on. If both exist, this room is a copy and gets an identity
 * of its own. */
MR_API enum mr_rc mr_trust_add(struct mr_room *room, struct mr_error *err);

struct mr_trust_record {
	const char *spec; /* of the room */
	enum mr_trust by; /* MR_TRUST_NONE: only settings, for a room that was named and not trusted */
	int64_t since_ms;
	bool gone; /* no room with that identity is at that place any more */
};
MR_LIST(mr_trusted, struct mr_trust_record);
/* Lists all records of this user, those of one room (spec not NULL), or those whose room is gone. `drop`: removes the
 * listed records and the configuration of their rooms. */
MR_API enum mr_rc mr_trust_list(
    const char *config_dir, const char *spec, bool gone_only, bool drop, struct mr_trusted *ret, struct mr_error *err);

MR_LIST(mr_settings, struct mr_header); /* in the order of the file */
MR_API enum mr_rc mr_config_list(struct mr_room *room, struct mr_settings *ret, struct mr_error *err);
/* The first line of that name that counts for this room, or NULL. Borrowed. */
MR_API const char *mr_config_get(struct mr_room *room, const char *name);
/* Replaces all lines of that name; with `add`, adds one. value NULL removes them; MR_NOTFOUND if there are none. room
 * NULL: the line is only checked. */
MR_API enum mr_rc mr_config_set(
    struct mr_room *room, const char *name, const char *value, bool add, struct mr_error *err);
/* Replaces all lines by these, or changes nothing. */
MR_API enum mr_rc mr_config_replace(
    struct mr_room *room, const struct mr_header *lines, size_t n, struct mr_error *err);

struct mr_leftover {              /* a line in the room that earlier versions obeyed and this one ignores */
	const char *where;        /* "room", "agents/bob/agent", "types/MERGED", "links/blue" */
	const char *line;         /* as it is written there: "Notify: beep" */
	const char *name, *value; /* the same setting in the user's configuration */
};
MR_LIST(mr_leftovers, struct mr_leftover);
/* Lists those that the user's configuration does not have already. */
MR_API enum mr_rc mr_config_leftovers(struct mr_room *room, struct mr_leftovers *ret, struct mr_error *err);

/* ---- Who is who ---- */

struct mr_process {      /* identifies a process, and tells it from a later one with the same number */
	int64_t pid;     /* 0: none */
	uint64_t start;  /* start time in clock ticks since boot, as the initial time namespace counts them */
	uint64_t pid_ns; /* inode of its pid namespace */
	char boot[40];   /* boot id */
};

/* MR_UNKNOWN: a life without a process, or one that cannot be checked from here (another container or machine). */
enum mr_presence { MR_GONE, MR_UNKNOWN, MR_LIVE };

/* The way in which a life was last used. MR_DOOR_UNKNOWN: recorded by an earlier version or another program. */
enum mr_door { MR_DOOR_UNKNOWN, MR_DOOR_LIBRARY, MR_DOOR_COMMAND, MR_DOOR_HOOK, MR_DOOR_MCP, MR_DOOR_HTTP };
MR_API const char *mr_door_word(enum mr_door door); /* "command", "hook", "mcp", "http", "library", or "" */

struct mr_agent { /* a registered name and its newest life; finish with mr_agent_done */
	char name[MR_ADDRESS_MAX + 1];
	unsigned life; /* 0: no life has begun (a mailbox made by --hold, the operator) */
	int64_t created_ms;
	int64_t started_ms; /* of the life */
	int64_t seen_ms;    /* the last command of that life */
	enum mr_door door;  /* the door of that command */
	struct mr_process process;
	const char *worktree; /* never NULL */
	const char *session;  /* "claude-code-<id>", or "" */
	const char *host;
	const char *role; /* free text given at registration */
	const char *wake; /* what an earlier version stored at registration, or "": it is never run */
	bool others;      /* shared room: belongs to another user, or that cannot be told */
	bool stray; /* room of another program: a mailbox without an entry in its list of members; @all skips it */
	void *own;
};
MR_API void mr_agent_done(struct mr_agent *agent);
MR_API enum mr_presence mr_agent_presence(const struct mr_agent *agent);

struct mr_env {              /* what the search for "who am I" may use; the caller fills it in from its environment */
	const char *as;      /* --as */
	const char *session; /* "<harness>-<session id>", or NULL */
	bool session_aged;   /* `session` is as old as this process: it may be that of an earlier or an outer session */
	bool two_sessions;   /* two harnesses are named: neither is used, and no process above us decides */
	bool outside;        /* no sign of a harness around us: the terminal may tell the agent */
	const char *agent;   /* $MAILROOM_AGENT or the variable of another program */
	const char *agent_source;  /* name of that variable, for messages */
	const char *worktree;      /* top of the worktree of the working folder */
	const char *state_dir;     /* where session bindings live, or NULL: none */
	struct mr_process process; /* the harness process, if it is known */
	bool hooked;           /* its harness reports when a session goes on in another process: no need to search */
	const char *tmux;      /* socket of the tmux server around us, or NULL */
	const char *tmux_pane; /* our pane there, such as "%3", or NULL */
	bool shared;           /* that process runs the sessions of several terminals: it does not identify this one */
	const char *inherited; /* other sessions in the environment of a hook, separated by blanks; or NULL */
};

struct mr_self {
	char agent[MR_ADDRESS_MAX + 1];
	unsigned life;
	bool bound;        /* this harness session is bound to the agent */
	bool explicit_as;  /* by --as: set by a person or script */
	bool hooked;       /* hooks of the session see the output of each tool */
	bool unconfirmed;  /* mail was shown, and it is not known yet whether the model got it: mr_confirm */
	enum mr_door door; /* how it acts; the caller may set it */
	char session[160];
	char how[200]; /* "--as", "session claude-code-1234 is bound to it", ... */
};

/* Tells which agent the caller is, in this order (DESIGN): --as; the binding of the session, or of the nearest bound
 * harness process above us; the variable; outside of a harness the one agent that this terminal registered, or that was
 * registered from this worktree; the one agent of the worktree whose life is gone. Binds an unbound session where that
 * order says so. MR_NOTFOUND: none of these; the hint is the exact line to type. MR_REFUSED: the life is fenced by a
 * newer one, or is live in another session. */
MR_API enum mr_rc mr_self_resolve(
    struct mr_room *room, const struct mr_env *env, struct mr_self *ret, struct mr_error *err);
/* The common case of mr_self_resolve, with few system calls and without env->process: the session is bound to the
 * newest life of its agent, by a process that still exists. Changes nothing. False: call mr_self_resolve. */
MR_API bool mr_self_bound(struct mr_room *room, const struct mr_env *env, struct mr_self *ret);
/* That agent in its newest life, without any search. MR_NOTFOUND: there is no such agent. */
MR_API enum mr_rc mr_self_named(struct mr_room *room, const char *agent, struct mr_self *ret, struct mr_error *err);
/* Records that self was active now, through self->door (UNKNOWN counts as LIBRARY). Written every few seconds at
 * most. */
MR_API void mr_self_seen(struct mr_room *room, const struct mr_self *self);

struct mr_registration {
	unsigned life;
	bool created;   /* the name is new */
	bool continued; /* this session was that agent before: same life */
	bool bound;     /* later commands of this session or terminal act as this agent by themselves */
	size_t here;    /* outside of a harness: how many agents this terminal has registered so far */
	size_t unread;
	size_t returned;      /* held mail of the last life that was put back */
	size_t returned_work; /* claimed work of queues that was put back */
};
struct mr_register_options {
	const char *role;
	bool takeover; /* even if the last life is still live */
};
/* Registers `name` for the caller: creates the agent if it is new, begins a new life, and puts back what the last life
 * held. MR_REFUSED: the name is not allowed, or is taken by a live agent (without takeover). MR_UNSUPPORTED: this kind
 * of room has no registration. MR_EXISTS, MR_BUSY: another process took the name meanwhile. */
MR_API enum mr_rc mr_register(struct mr_room *room, const char *name, const struct mr_env *env,
    const struct mr_register_options *options, struct mr_registration *ret, struct mr_error *err);

MR_LIST(mr_agents, struct mr_agent);
MR_API enum mr_rc mr_agent_list(struct mr_room *room, struct mr_agents *ret, struct mr_error *err);
MR_API enum mr_rc mr_agent_get(struct mr_room *room, const char *name, struct mr_agent *ret, struct mr_error *err);

/* ---- Tokens: identity of callers from the network ---- */

#define MR_SECRET_LEN 40
struct mr_token {
	char name[65]; /* a hash of the token, not a secret; its first digits identify it for mr_token_revoke */
	char agent[MR_ADDRESS_MAX + 1]; /* the agent that its bearer is */
	bool read_only;
	bool browser;                   /* the cookie of a browser */
	int64_t created_ms, expires_ms; /* expires 0: never */
};
/* Makes a token and stores a hash of it. ret_secret is the token: it cannot be read again. MR_UNSUPPORTED: the room
 * cannot store tokens. */
MR_API enum mr_rc mr_token_create(struct mr_room *room, const struct mr_token *what, char ret_secret[MR_SECRET_LEN + 1],
    struct mr_token *ret, struct mr_error *err);
/* MR_NOTFOUND: the token was not made here, is revoked or expired, or its agent was pruned and the name taken again. */
MR_API enum mr_rc mr_token_check(struct mr_room *room, const char *secret, struct mr_token *ret, struct mr_error *err);
MR_LIST(mr_tokens, struct mr_token);
MR_API enum mr_rc mr_token_list(struct mr_room *room, struct mr_tokens *ret, struct mr_error *err);
MR_API enum mr_rc mr_token_revoke(struct mr_room *room, const char *name, struct mr_token *ret, struct mr_error *err);

struct mr_counts { /* of one mailbox */
	size_t unread, seen, held, urgent;
	int64_t oldest_unread_ms; /* 0: none */
};
MR_API enum mr_rc mr_count(struct mr_room *room, const char *agent, struct mr_counts *ret, struct mr_error *err);

struct mr_prune_options {
	const char *const *names; /* NULL-terminated, or NULL */
	int64_t stale_ms;         /* unused for that long; 0: only `names` */
	bool dry_run;
	bool force; /* also live ones, and also more than half of all */
};
struct mr_pruned {
	char name[MR_ADDRESS_MAX + 1];
	int64_t seen_ms;
	size_t dead;     /* unread mail that went to dead letters */
	size_t returned; /* work that went back to queues */
};
MR_LIST(mr_prunings, struct mr_pruned);
/* Removes agents, or with dry_run lists those that would be removed. *ret is also filled in when it ends early; it may
 * be NULL. */
MR_API enum mr_rc mr_prune(
    struct mr_room *room, const struct mr_prune_options *options, struct mr_prunings *ret, struct mr_error *err);

/* ---- Sending ---- */

struct mr_draft {
	const char *const *to; /* NULL-terminated; addresses */
	const char *const *cc; /* NULL-terminated, or NULL */
	const char *subject;   /* NULL: the first line of the body */
	const char *body;
	size_t body_len;
	const char *const *attach; /* paths of files, NULL-terminated, or NULL; together at most MR_ATTACH_MAX */
	const struct mr_message
	    *mime;        /* or the whole content of this message, unchanged (mr_message_read); body is its text */
	const char *type; /* checked by its definition, if the room has one */
	const struct mr_header *fields; /* of the type: subject and text are made from them; `body` is appended */
	size_t fields_n;
	bool force; /* send even what the type does not allow */
	enum mr_priority priority;
	bool priority_given; /* `priority` counts even if it is MR_NORMAL; else the type's own counts */
	const char *thread;
	const char *reply_to;            /* id in the sender's mailbox (any folder) */
	const struct mr_header *headers; /* further headers; names are checked */
	size_t headers_n;
	const char *key;         /* sending again with the same key sends nothing twice */
	const char *replace_key; /* retires the sender's older unread mail with that key */
	int64_t by_ms;           /* an answer is wanted by then; 0: no time */
	int64_t not_before_ms;   /* to a queue: not to be claimed earlier; 0: at once */
	const char *reply_path;  /* for a sender without a mailbox: folder for the answer; or NULL */
	bool hold;               /* make missing mailboxes */
	bool only;               /* an answer: leave older questions of the same conversation open */
	bool no_text;            /* an empty text is intended */
	bool no_subject;         /* an empty subject is intended: do not make one from the text */
	bool dry_run;
};

struct mr_fields; /* defined in mailroom-town.h */
struct mr_receipt {
	char id[MR_ID_LEN + 1];
	struct mr_names to;         /* the recipients, resolved, each once */
	struct mr_names not_live;   /* recipients that are gone or never registered; not looked up for more than 16 */
	struct mr_names missing;    /* with MR_INDOUBT: recipients without a copy so far */
	struct mr_names trouble;    /* members of groups that reach nobody, a sentence each */
	struct mr_names warnings;   /* rules of its type that it breaks, though it was sent; a sentence each */
	struct mr_names superseded; /* ids of older questions of that sender, closed with this answer */
	bool repeated;              /* the key was used before: `id` is that message's */
	size_t retired;             /* messages retired by replace_key */
	struct mr_fields *fields;   /* all fields of a message with a type; or NULL */
	char *warning;              /* a room setting that is ignored, reported once a life; or NULL */
	char *notify;               /* the user's Notify: command of this room, to run for the operator; or NULL */
};
MR_API enum mr_rc mr_send(struct mr_room *room, const struct mr_self *self, const struct mr_draft *draft,
    struct mr_receipt *ret, struct mr_error *err); /* also filled in with MR_INDOUBT */
MR_API void mr_receipt_done(struct mr_receipt *receipt);
/* Sends many messages in order, each as mr_send does, but makes them durable in groups: hundreds then wait for the disk
 * about as often as one. A message that is refused does not stop the others. When this returns, every message whose rc
 * is MR_OK is on stable storage. During the call they may become visible in another order; after a crash during it each
 * message is there as a whole or not at all. Messages with several recipients, a key or a deadline, to queues and
 * channels, and in rooms of other programs are sent one by one: correct, but not faster. Pass some hundred at a time:
 * results come only when all are done. */
struct mr_sent {
	enum mr_rc rc;
	struct mr_receipt receipt; /* set with MR_OK and MR_INDOUBT; call mr_receipt_done in any case */
	struct mr_error error;
};
MR_API void mr_send_many(struct mr_room *room, const struct mr_self *self, const struct mr_draft *drafts, size_t n,
    struct mr_sent *ret); /* n of them, all filled in */
/* Answers a message: adds "Re:" once, keeps thread and references, marks the original as replied. draft->to NULL: the
 * original's sender; `all` adds its other recipients. */
MR_API enum mr_rc mr_reply(struct mr_room *room, const struct mr_self *self, const char *id,
    const struct mr_draft *draft, bool all, struct mr_receipt *ret, struct mr_error *err);

/* ---- Looking (never consumes) ---- */

struct mr_filter {        /* { 0 } lets everything through */
	unsigned folders; /* enum mr_folder; 0: MR_INBOX */
	bool unread;      /* only mail without MR_SEEN */
	bool seen;        /* only mail with it */
	bool no_control;  /* no control messages (mr_is_control), except in MR_SENT */
	unsigned life;    /* leave out the hand-off that this life wrote for the next one; 0: keep it */
	const char *from; /* address, or the part before @ */
	const char *type;
	const char *thread;   /* thread id, or id of a message in it */
	const char *reply_to; /* answers to that id */
	const enum mr_priority *priority;
	int64_t since_ms, before_ms;
	const char *words; /* a query as `mailroom search` takes it: words, "phrases", prefix*, from:, -word, ... */
	const char *regex; /* POSIX extended, any case */
};

enum mr_order {
	MR_OLDEST_FIRST,
	MR_NEWEST_FIRST,
	MR_BY_PRIORITY /* urgent first, then newest */,
	MR_WORK_ORDER /* urgent first, then oldest */
};

typedef bool mr_message_fn(void *ctx, const struct mr_message *msg); /* false stops */
/* Called for each corrupt or unreadable message, which mr_scan then skips. */
typedef void mr_trouble_fn(void *ctx, const char *path, const struct mr_error *err);
/* mr_scan streams messages with headers, and with bodies if `bodies`. With the first two orders it keeps only names in
 * memory. */
struct mr_scan {
	struct mr_filter filter;
	enum mr_order order;
	bool bodies;
	bool names; /* only ids are needed: in a large mailbox whose names tell the order, nothing else is filled in */
	size_t limit; /* 0: no limit */
	/* NULL, or asked for each id before its message is opened, maybe more than once: false leaves the message out.
	 * Rooms whose file names do not hold ids ignore it. */
	bool (*wants)(void *ctx, const char *id);
	/* With wants: it leaves out all ids that were made before this time, so they need not be read. A filter
	 * compares dates instead, which are whole seconds of the sender's clock. */
	int64_t ids_since_ms;
	/* NULL, or set to the number of messages before the first is shown, if names tell it; then at most `screen`
	 * messages are shown. Otherwise it is untouched and all are shown. */
	size_t *ret_total;
	size_t screen;
	mr_trouble_fn *trouble;
	void (*looked)(void *ctx, size_t n); /* NULL, or called after every 1,000 messages */
};
MR_API enum mr_rc mr_scan(struct mr_room *room, const char *agent, const struct mr_scan *scan, mr_message_fn *fn,
    void *ctx, struct mr_error *err);
/* id may be its last 6 or more characters. MR_REFUSED: several messages match, and the hint lists them. */
MR_API enum mr_rc mr_fetch(
    struct mr_room *room, const char *agent, const char *id, struct mr_message *ret, struct mr_error *err);
/* Passes on the stored bytes, piece by piece. */
typedef enum mr_rc mr_bytes_fn(void *ctx, const char *bytes, size_t n, struct mr_error *err);
MR_API enum mr_rc mr_fetch_raw(
    struct mr_room *room, const char *agent, const char *id, mr_bytes_fn *fn, void *ctx, struct mr_error *err);
/* Finds the full id of a short one in the given folders (0: all). */
MR_API enum mr_rc mr_resolve_id(struct mr_room *room, const char *agent, const char *id, unsigned folders,
    char ret_id[MR_ID_LEN + 1], struct mr_error *err);

/* ---- Showing, then consuming (promise 9) ---- */

struct mr_show; /* mail that this process is showing; if the process dies, the kernel releases it */
/* Judges each message before it is taken. mr_show_take returns MR_EMPTY for a message that is not wanted, and for one
 * that cannot be read, which it reports to `trouble`. */
struct mr_show_choice {
	mr_message_fn *wanted;
	mr_trouble_fn *trouble;
	void *ctx; /* for both functions */
};
/* choice NULL: every message is wanted. */
MR_API enum mr_rc mr_show_open(struct mr_room *room, const struct mr_self *self, const struct mr_show_choice *choice,
    struct mr_show **ret, struct mr_error *err);
/* Unread mail is taken: hidden from all other commands. Read mail is only fetched. MR_BUSY: another command is showing
 * it or working on it; ret_msg is filled in all the same, because looking is free. */
MR_API enum mr_rc mr_show_take(struct mr_show *show, const char *id, struct mr_message *ret_msg, struct mr_error *err);
MR_API enum mr_rc mr_show_back(struct mr_show *show, const char *id, struct mr_error *err);
/* Call it after the output was written: marks all mail that is still taken as read (and archives it), durably.
 * MR_REFUSED: this life was fenced meanwhile; the newer life gets the mail. */
MR_API enum mr_rc mr_show_finish(struct mr_show *show, bool archive, size_t *ret_marked, struct mr_error *err);
MR_API void mr_show_close(struct mr_show *show); /* gives back what was not finished */

/* ---- Work: recv, then done ---- */

struct mr_queue_left { /* work of a queue that is still to be done */
	size_t ready, reserved, delayed, claimed,
	    mine; /* reserved: for another agent; mine: the asker's part of claimed */
};
struct mr_claim {
	char token[MR_TOKEN_LEN + 1];
	char id[MR_ID_LEN + 1];
	unsigned attempt;          /* 1 for the first claim; released claims do not count */
	unsigned attempts;         /* set by mr_queue_recv: attempts that this queue allows; 0: no limit */
	int64_t deadline_ms;       /* wall clock; for people */
	struct mr_queue_left left; /* set by mr_queue_recv with MR_EMPTY: what may still come */
	char skipped[240]; /* set by mr_queue_recv: work that was passed over as unreadable, a sentence; or "" */
};
/* Claims the next unread message that passes the filter, in MR_WORK_ORDER. It is hidden from others until the lease
 * ends or until mr_claim_done, _release or _fail. MR_EMPTY: there is none. */
MR_API enum mr_rc mr_recv(struct mr_room *room, const struct mr_self *self, const struct mr_filter *filter,
    int64_t lease_ms, struct mr_claim *ret_claim, struct mr_message *ret_msg, struct mr_error *err);
/* Ends a claim: the work is done. `what` is a token, or the id (short or full) of a message on which this life holds
 * exactly one claim. With a result, the sender first gets it as an answer in the thread; only its text and type count.
 * If it is killed in between, repeating the call sends nothing twice, because the claim serves as key. MR_OK with a
 * text in err->hint: the sender is gone, nobody was told, and ret_answer is "". Without a result ret_answer is
 * untouched. */
MR_API enum mr_rc mr_claim_done(struct mr_room *room, const struct mr_self *self, const char *what,
    const struct mr_draft *result, char ret_id[MR_ID_LEN + 1], char ret_answer[MR_ID_LEN + 1], struct mr_error *err);
struct mr_release {
	const char *reason; /* work of a queue: kept in its history; or NULL */
	const char *to;     /* work of a queue: only this agent may claim it for to_ms from now; or NULL */
	int64_t to_ms;      /* 0: the lease of the queue */
	bool unseen;        /* nobody saw it: it keeps its place in the order and counts as an attempt */
};
/* Puts work back behind all that waits. It does not count as an attempt, and this agent gets it again only when nothing
 * else waits. how NULL: no details. The operator may put back work of a queue that another agent holds; a later `done`
 * by that agent finds no claim. */
MR_API enum mr_rc mr_claim_release(struct mr_room *room, const struct mr_self *self, const char *what,
    const struct mr_release *how, char ret_id[MR_ID_LEN + 1], struct mr_error *err);
/* Ends a claim for good: the sender gets a bounce with the reason, and the mail goes to dead letters. MR_OK with a text
 * in err->hint: the sender is gone and nobody was told; else the hint is "". */
MR_API enum mr_rc mr_claim_fail(struct mr_room *room, const struct mr_self *self, const char *what, const char *reason,
    char ret_id[MR_ID_LEN + 1], struct mr_error *err);
MR_API enum mr_rc mr_claim_extend(struct mr_room *room, const struct mr_self *self, const char *what, int64_t lease_ms,
    struct mr_claim *ret, struct mr_error *err);

/* ---- State ---- */

MR_API enum mr_rc mr_mark(struct mr_room *room, const struct mr_self *self, const char *id, unsigned set,
    unsigned clear, struct mr_error *err);
MR_API enum mr_rc mr_archive(struct mr_room *room, const struct mr_self *self, const char *id, struct mr_error *err);
struct mr_packed {
	size_t messages;                    /* put into the pack, or taken out of it */
	size_t total;                       /* in the pack now */
	size_t left;                        /* not packed, still files: unread, pinned, or another user's */
	uint64_t bytes_before, bytes_after; /* on the disk: of the files that were packed, of the pack */
};
/* Packs a month of self's archive, such as "2026-01", into one compressed mbox that reads like the files, or unpacks it
 * into files. Packed mail cannot be marked or moved. MR_UNSUPPORTED: only the program mailroom-full can pack. */
MR_API enum mr_rc mr_pack(struct mr_room *room, const struct mr_self *self, const char *month, bool unpack,
    struct mr_packed *ret, struct mr_error *err);
/* Removes all mail of self's inbox for good, read or not, as some programs do with theirs. */
MR_API enum mr_rc mr_clear(struct mr_room *room, const struct mr_self *self, size_t *ret_removed, struct mr_error *err);
/* Makes the marks and moves since the last call durable. A command calls it once at its end. */
MR_API enum mr_rc mr_flush(struct mr_room *room, struct mr_error *err);
struct mr_purged {               /* finish with mr_purged_done */
	size_t removed;          /* copies */
	struct mr_names told;    /* agents that had it unread; each got a mail about it */
	struct mr_names carried; /* AGENT@LINK: a linked room has a copy, which is not removed */
	char *warning; /* the mail is removed, but its tombstone could not be kept or somebody not be told; or NULL */
};
/* Removes a message from every mailbox and leaves a tombstone. MR_REFUSED: self is neither its sender nor the operator.
 * If it is cut off or the disk is full, the same call completes it. */
MR_API enum mr_rc mr_purge(struct mr_room *room, const struct mr_self *self, const char *id, const char *reason,
    struct mr_purged *ret, struct mr_error *err); /* ret may be NULL */
MR_API void mr_purged_done(struct mr_purged *purged);

/* ---- Waiting ---- */

/* Returns MR_OK as soon as unread mail passes the filter, at once if there is some. timeout_ms 0 looks once. MR_EMPTY:
 * the time is up. ret_nudge not NULL: a nudge ends the wait too, and *ret_nudge tells the two apart. Nothing is
 * consumed. */
MR_API enum mr_rc mr_wait(struct mr_room *room, const char *agent, const struct mr_filter *filter, int64_t timeout_ms,
    bool *ret_nudge, struct mr_error *err);

/* Watches the whole room, for a program that displays it: mr_watch_wait returns true when mail, marks, work or agents
 * may have changed, false when the time is up. It sees changes from mr_watch_open on, so read the room after that. Give
 * it a room handle that nothing else uses meanwhile. */
struct mr_watch;
MR_API enum mr_rc mr_watch_open(struct mr_room *room, struct mr_watch **ret, struct mr_error *err);
MR_API bool mr_watch_wait(struct mr_watch *watch, int64_t timeout_ms);
/* False: this kind of room reports no changes; mr_watch_wait then returns true four times a second, and the caller must
 * look. */
MR_API bool mr_watch_sees(const struct mr_watch *watch);
MR_API void mr_watch_close(struct mr_watch *watch);

/* Call it before waiting for an answer to `id` (mr_filter.reply_to). MR_OK: the agent has that message (in a room
 * without sent mail: some mailbox has it), and an answer to it can be told from other mail. MR_NOTFOUND,
 * MR_UNSUPPORTED: it does not, or cannot. MR_REFUSED: only the agent itself could answer. */
MR_API enum mr_rc mr_question(
    struct mr_room *room, const char *agent, const char *id, char ret_id[MR_ID_LEN + 1], struct mr_error *err);
/* For a sender without a mailbox (mr_draft.reply_path): waits for the answer to `id` (from mr_send, or the room's id of
 * it) in `dir` (NULL: where the send said). MR_EMPTY: the time is up. The answer stays there until mr_answer_taken, to
 * be called once it was shown. */
MR_API enum mr_rc mr_answer_wait(struct mr_room *room, const char *id, const char *dir, int64_t timeout_ms,
    struct mr_message *ret, struct mr_error *err);
MR_API enum mr_rc mr_answer_taken(struct mr_room *room, const char *id, const char *dir, struct mr_error *err);
/* Was `id` sent with a reply path from here, so that mr_answer_wait knows where to look? */
MR_API bool mr_answer_expected(struct mr_room *room, const char *id);

/* ---- History and maintenance ---- */

struct mr_trail {             /* one fact about a message, with its evidence */
	const char *agent;    /* whose copy, or "" */
	const char *state;    /* "unread", "read", "archived", "held", "sent", "dead", "retried", "dropped", "purged",
				 "pending", "nowhere", "announced", "answered"; a claim that is over "done", "released",
				 "failed",    "came back"; in a linked room "carried", "read", "vanished" */
	const char *evidence; /* a sentence */
	int64_t at_ms;        /* when that was; 0: not recorded */
};
struct mr_trails {
	void *own;
	struct mr_trail *v;
	size_t n;
};
/* All that is known about a message. MR_NOTFOUND: nothing. */
MR_API enum mr_rc mr_why(
    struct mr_room *room, const struct mr_self *self, const char *id, struct mr_trails *ret, struct mr_error *err);
/* The states of a message that self sent, without evidence. Looks only into the mailboxes that it went to; if it is
 * missing from one of them, it is searched everywhere, as by mr_why. */
MR_API enum mr_rc mr_became(struct mr_room *room, const struct mr_self *self, const struct mr_message *sent,
    struct mr_trails *ret, struct mr_error *err);

struct mr_due { /* an overdue answer (send --by) */
	char id[MR_ID_LEN + 1];
	const char *to; /* first recipient */
	const char *subject;
	int64_t by_ms;
};
struct mr_dues {
	void *own;
	struct mr_due *v;
	size_t n;
};
/* Lists overdue answers of self. Each is returned until mr_overdue_told says that it was shown. */
MR_API enum mr_rc mr_overdue(
    struct mr_room *room, const struct mr_self *self, struct mr_dues *ret, struct mr_error *err);
MR_API void mr_overdue_told(struct mr_room *room, const struct mr_self *self, const char *id);

enum mr_severity { MR_FINE, MR_NOTE, MR_PROBLEM };
struct mr_finding { /* strings are never NULL in a callback */
	enum mr_severity severity;
	const char *code; /* a word: "modes", "leftovers", "storage", ... */
	const char *path; /* what it is about, relative to the room if it is in it; or "" */
	const char *what; /* the fact */
	const char *why;  /* its cause and consequence; or "" */
	const char *fix;  /* what to do, or what was done; or "" */
	bool fixed;       /* it was repaired, because `fix` was set; nothing was thrown away */
};
typedef void mr_finding_fn(void *ctx, const struct mr_finding *finding);
/* Checks the room and calls fn for each finding; `fix` repairs safely. Things that were fine within a day are not read
 * again; a stopped call goes on where it stopped. */
MR_API enum mr_rc mr_doctor(struct mr_room *room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err);

/* Progress of calls that go through a whole room (mr_doctor, mr_export, mr_costs), reported often. total 0: unknown.
 * False stops the call as soon as nothing is half done: MR_STOPPED, and *err says how far it came. fn NULL: no
 * reports. */
typedef bool mr_progress_fn(void *ctx, const char *what, size_t done, size_t total);
MR_API void mr_room_on_progress(struct mr_room *room, mr_progress_fn *fn, void *ctx);

struct mr_cost {             /* disk use of one kind of thing in a room */
	const char *what;    /* "archive", "sent", "done", "dead", "records" */
	const char *setting; /* the setting that limits it, "Keep-Archive"; "": none */
	const char *keep;    /* its value, or "" */
	size_t files;        /* messages; for records, files */
	uint64_t bytes; /* on the disk, estimated from a sample of each folder; a file in two folders counts twice */
};
typedef void mr_cost_fn(void *ctx, const struct mr_cost *cost);
MR_API enum mr_rc mr_costs(struct mr_room *room, mr_cost_fn *fn, void *ctx, struct mr_error *err);

/* ---- What needs a person now ---- */

enum mr_need_kind {         /* in the order of the list, pressing ones before all others */
	MR_NEED_ANSWER,     /* mail to the operator that is unread or waits for an answer */
	MR_NEED_OVERDUE,    /* a question between agents whose answer is overdue */
	MR_NEED_UNREAD,     /* mail that has waited for long although its agent is not known to be gone */
	MR_NEED_LEASE,      /* a claim near or past the end of its lease */
	MR_NEED_ATTEMPT,    /* work that is claimed for the last attempt */
	MR_NEED_FAILED,     /* work of a queue that failed */
	MR_NEED_DEAD,       /* a dead letter of the room */
	MR_NEED_GONE,       /* an agent that is gone and has unread mail or held work */
	MR_NEED_LINK,       /* a room that cannot be opened, or mail that waits to be carried to it */
	MR_NEED_THROTTLED,  /* a thread that woke its agents too often */
	MR_NEED_UNREADABLE, /* a file that is not a message */
	MR_NEED_KINDS
};
/* "answer", "overdue", "unread", "lease", "attempt", "failed", "dead", "gone", "link", "throttled", "unreadable" */
MR_API const char *mr_need_word(enum mr_need_kind kind);

struct mr_action {            /* one command that would help */
	const char *label;    /* a word for a button: "reply" */
	const char *words[5]; /* the command behind "mailroom", up to NULL: "reply", "01k9..." */
	bool text;            /* it reads a text from standard input */
};
struct mr_need { /* strings are never NULL, "" where they do not apply */
	enum mr_need_kind kind;
	bool pressing; /* somebody waits for it, or it is late */
	char id[MR_ID_LEN + 1];
	const char *agent; /* whose mailbox, who holds it, or who asked */
	const char *queue, *link, *thread, *path;
	const char *from, *subject;
	enum mr_priority priority;
	size_t count; /* unread mail of the agent, or mail that waits for the link; or 0 */
	int64_t since_ms;
	int64_t due_ms;  /* when an answer is due or the lease ends; 0: no time */
	const char *why; /* the evidence, a sentence */
	struct mr_action actions[2];
	size_t actions_n;
};
struct mr_box { /* a mailbox, read from its file names */
	const char *agent;
	size_t unread, urgent;
	size_t held;           /* held by it: its own mail, and work of queues */
	size_t came, seen;     /* mail of the last minute that is still in its inbox; how much of it was read */
	size_t archived, sent; /* of the last minute; only with `minute` */
	int64_t oldest_ms;     /* of its unread mail; 0: none */
	char oldest[MR_ID_LEN + 1];
};
struct mr_attention { /* finish with mr_attention_done */
	int64_t at_ms;
	struct mr_need *needs; /* the most pressing first */
	size_t n;
	size_t total[MR_NEED_KINDS]; /* how many of each kind, listed or not */
	size_t more;                 /* not listed */
	struct mr_box *boxes;        /* all mailboxes, by name */
	size_t boxes_n;
	size_t unread, held, dead; /* in the room; dead: failed work and dead letters */
	int64_t oldest_ms;         /* of all unread mail; 0: none */
	size_t came, seen;         /* mail of the last minute that is still in an inbox; how much of it was read */
	void *own;
};
struct mr_attention_options { /* { 0 } is the default */
	int64_t unread_ms;    /* mail that waits longer is a need; 0: 10 minutes */
	size_t limit;         /* list at most so many of each kind; 0: 20; at most 200 */
	bool minute;          /* count mail that was archived and sent in the last minute, too */
};
/* Changes nothing. It reads names; it opens only the listed messages, and a few of the operator's. */
MR_API enum mr_rc mr_attention(
    struct mr_room *room, const struct mr_attention_options *options, struct mr_attention *ret, struct mr_error *err);
MR_API void mr_attention_done(struct mr_attention *attention);

/* ---- A picture of who told whom ---- */

struct mr_lane { /* a column: an agent, "queue:Q", "channel:C", AGENT@LINK */
	const char *name;
	unsigned life;   /* of an agent: its newest; 0: none, or nothing is known */
	int64_t born_ms; /* when that life began; 0: unknown */
	int64_t died_ms; /* its last sign of life, if it is known to be gone; 0: it is not */
};
struct mr_arrow { /* a message */
	char id[MR_ID_LEN + 1];
	const char *thread, *subject, *type;
	enum mr_priority priority;
	int64_t at_ms;
	size_t from;      /* a lane */
	const size_t *to; /* lanes, each once */
	size_t to_n;
	const bool *read; /* for each lane of `to`: was it read, done or answered there? */
	bool answer;      /* it answers another message */
	bool question;    /* an answer was wanted by some time */
};
struct mr_bar { /* work that an agent holds or held */
	char id[MR_ID_LEN + 1];
	size_t lane;
	int64_t from_ms, to_ms; /* to_ms 0: it still holds it */
	const char *how;        /* "held", or how it ended: "done", "released", "failed", "came back" */
};
struct mr_picture {             /* finish with mr_picture_done */
	const char *title;      /* the subject of the thread; "": it shows a span of time */
	int64_t from_ms, to_ms; /* to_ms: the present */
	struct mr_lane *lanes;
	struct mr_arrow *arrows; /* in the order of time */
	struct mr_bar *bars;
	size_t lanes_n, arrows_n, bars_n;
	size_t left_out; /* older messages that are left out */
	void *own;
};
struct mr_picture_options {
	const char *thread; /* its word, or the end of the id of a message in it; NULL: all mail since since_ms */
	int64_t since_ms;   /* 0: no limit for a thread, else the last hour */
	size_t limit;       /* keep the newest so many; 0: 200; at most 1000 */
};
/* Collects the messages of the room, with senders and recipients, as far as the mailboxes still hold them. `agent`: its
 * mailbox is searched first for a short id. MR_NOTFOUND: there is no such thread. */
MR_API enum mr_rc mr_picture(struct mr_room *room, const char *agent, const struct mr_picture_options *options,
    struct mr_picture *ret, struct mr_error *err);
MR_API void mr_picture_done(struct mr_picture *picture);
/* Draws it as SVG: no script, all text escaped, light or dark as the reader prefers. An arrow links to `link` + id
 * ("/message/"; NULL: no links). From 60 messages on, a run of messages is drawn as one arrow. The caller frees
 * *ret. */
MR_API enum mr_rc mr_picture_svg(
    const struct mr_picture *picture, const char *link, char **ret, size_t *ret_len, struct mr_error *err);
/* Draws it as text for a terminal of that width; a narrow one gets a list. The caller frees *ret. */
MR_API enum mr_rc mr_picture_text(
    const struct mr_picture *picture, size_t columns, char **ret, size_t *ret_len, struct mr_error *err);

/* ---- An index of the mail ---- */

/* A cache: it proposes messages, which are then read from the mail itself. Without it the same is found, only slower.
 * Only the program mailroom-full can use it; elsewhere mr_index_update is MR_UNSUPPORTED. */
struct mr_indexed {
	size_t messages;       /* copies in the index; 0: nothing changed */
	size_t added, removed; /* by this call */
	bool rebuilt;          /* the old index could not be used */
};
typedef bool mr_index_fn(void *ctx, size_t added); /* called now and then; false stops: the next call goes on there */
/* Is this the end of an id that is neither in the inbox nor held, in a room with an index? mailroom-full can find it at
 * once; another program must read the names of the archive. */
MR_API bool mr_id_is_far(struct mr_room *room, const char *agent, const char *given);
/* Makes the index or brings it up to date. MR_BUSY: another process is doing that; with `wait` the call waits for it.
 * MR_REFUSED: this room must not have an index; err says why. */
MR_API enum mr_rc mr_index_update(
    struct mr_room *room, bool wait, mr_index_fn *progress, void *ctx, struct mr_indexed *ret, struct mr_error *err);
/* MR_NOTFOUND: there is no index. */
MR_API enum mr_rc mr_index_drop(struct mr_room *room, struct mr_error *err);

/* ---- The verbs of another program ---- */

/* Runs a verb of the program that the room's format belongs to, and returns what that program would print. For
 * replacements of that program. args ends with NULL. MR_UNSUPPORTED: that kind of room has no such verb. The caller
 * frees *ret. */
MR_API enum mr_rc mr_room_face(struct mr_room *room, const char *verb, const char *const *args, const char *input,
    size_t input_len, char **ret, size_t *ret_len, struct mr_error *err);

/* ---- From room to room ---- */

struct mr_export_options {
	const char *const *agents; /* of the first room, NULL-terminated; NULL: all */
	const char *const *names;  /* "OLD=NEW": OLD of the first room becomes NEW in the second; or NULL */
	const char *agent;         /* name for the only agent of a plain Maildir; or NULL */
	bool dry_run;
};
struct mr_export_step {
	size_t done, total;             /* messages */
	const char *agent;              /* of the first room */
	const char *what;               /* an id, or where the message is */
	const struct mr_error *trouble; /* why it was skipped; NULL: it was copied */
};
typedef bool mr_export_fn(void *ctx, const struct mr_export_step *step); /* false stops between two messages */
struct mr_exported {
	size_t copied;
	size_t there;   /* copied by an earlier run */
	size_t skipped; /* unreadable, or impossible to store there */
	size_t agents;
	bool stopped;
};
/* Copies all mail (inbox and archive) with date, read state, threads and answers. Fields that the other kind of room
 * cannot store are written into the body. Repeating the call copies what is missing, nothing twice. MR_REFUSED before
 * anything is written: two agents would get one name. MR_OK also when messages were skipped: each was reported to fn
 * (may be NULL). *ret is also filled in when it ends early. */
MR_API enum mr_rc mr_export(struct mr_room *from, struct mr_room *to, const struct mr_export_options *options,
    mr_export_fn *fn, void *ctx, struct mr_exported *ret, struct mr_error *err);

/* ---- Addresses ---- */

struct mr_resolution {    /* what an address means; finish with mr_resolution_done */
	const char *form; /* "agent", "operator", "wildcard", "pattern", "group", "queue", "channel", "link" */
	char name[MR_ADDRESS_MAX + 1]; /* of the agent, pattern, group, queue or channel, without its prefix */
	struct mr_names targets;       /* the recipients: agents, "queue:Q", "channel:C"; each once */
	struct mr_names trouble;       /* members that reach nobody, a sentence each */
	struct mr_names trail;         /* how each was found, a sentence each */
};
/* Resolves an address. Order: prefix; @ pattern or group; "/"; names of groups, queues and channels, and agents.
 * MR_REFUSED: several kinds have that name; the hint lists the prefixed forms. */
MR_API enum mr_rc mr_resolve(
    struct mr_room *room, const char *sender, const char *address, struct mr_resolution *ret, struct mr_error *err);
MR_API void mr_resolution_done(struct mr_resolution *resolution);

/* ---- Dead letters: work that failed and mail that could not be delivered, kept until a person or agent decides
 * ---- */

/* Lists the dead letters of the room (mr_scan with MR_DEAD also does) with queue "", and the failed work of queues,
 * with headers: the newest first, at most `limit` (0: all). *ret_all (or NULL) is the number of all; with fn NULL only
 * that is determined. */
typedef bool mr_dead_fn(void *ctx, const char *queue, const struct mr_message *msg); /* false stops */
MR_API enum mr_rc mr_dead_each(
    struct mr_room *room, size_t limit, mr_dead_fn *fn, void *ctx, size_t *ret_all, struct mr_error *err);
/* Returns one of them with its body. ret_queue is the queue in which it failed, or "". */
MR_API enum mr_rc mr_dead_get(struct mr_room *room, const char *id, struct mr_message *ret,
    char ret_queue[MR_ADDRESS_MAX + 1], struct mr_error *err);
/* Delivers a dead letter again under a new id, to `to` (NULL: its queue, or its own recipients who have no copy), then
 * removes it from the dead letters. If it was cut off in between, the next call only removes it. */
MR_API enum mr_rc mr_dead_retry(struct mr_room *room, const struct mr_self *self, const char *id, const char *const *to,
    struct mr_receipt *ret, struct mr_error *err);
/* Removes a dead letter for good. */
MR_API enum mr_rc mr_dead_drop(struct mr_room *room, const struct mr_self *self, const char *id, struct mr_error *err);

/* ---- Links: other rooms, and mail between them ---- */

#define MR_LINK_NAME_MAX 58 /* [a-z0-9][a-z0-9_-]*; outgoing mail waits in queue:link-NAME */

struct mr_link_name {      /* an agent of this room, and its name over there */
	const char *local; /* an agent here, or AGENT@LINK: one of a third room */
	const char *foreign;
};
struct mr_link { /* finish with mr_link_done */
	char name[MR_LINK_NAME_MAX + 1];
	const char *room; /* spec of the other room, absolute */
	const struct mr_link_name *names;
	size_t names_n;
	const char *created_by;
	int64_t created_ms;
	void *own;
};
MR_API void mr_link_done(struct mr_link *link);
MR_LIST(mr_links, struct mr_link);
/* MR_CORRUPT: a link cannot be read; err says which, and *ret has the others. */
MR_API enum mr_rc mr_link_list(struct mr_room *room, struct mr_links *ret, struct mr_error *err);
MR_API enum mr_rc mr_link_get(struct mr_room *room, const char *name, struct mr_link *ret, struct mr_error *err);
/* Gives the room `spec` the name `name`: mail to AGENT@name goes there from now on. MR_NOTFOUND: there is no room.
 * `make`: create a place that the first message would create. */
MR_API enum mr_rc mr_link_create(struct mr_room *room, const struct mr_self *self, const char *name, const char *spec,
    bool make, struct mr_error *err);
/* Makes an agent known in the other room, with a mailbox that can be written to. foreign NULL: the name is derived from
 * the local one. MR_EXISTS: the name is taken there. `adopt`: an existing mailbox of that name becomes the agent's, and
 * its unread mail is carried. */
MR_API enum mr_rc mr_link_introduce(struct mr_room *room, const char *link, const char *local, const char *foreign,
    bool adopt, char ret_foreign[MR_ADDRESS_MAX + 1], struct mr_error *err);
/* MR_REFUSED while mail waits to go out, unless `force`, which moves that mail to dead letters. The other room is not
 * changed. */
MR_API enum mr_rc mr_link_remove(
    struct mr_room *room, const char *name, bool force, size_t *ret_dead, struct mr_error *err);

/* Does the user's configuration let this room exchange mail with that one? */
MR_API bool mr_link_allowed(struct mr_room *room, const struct mr_link *link);

enum mr_carry_way { MR_CARRY_OUT = 1, MR_CARRY_IN = 2 };
struct mr_carried {
	size_t out, in;  /* messages that arrived, counted by recipients */
	size_t waiting;  /* could not go out now; tried again later */
	size_t failed;   /* can never arrive; their senders were told */
	size_t vanished; /* arrived, but their mailbox was removed with them unread; their senders were told */
};
/* Called for each thing that could not be carried or read; the rest goes on. */
typedef void mr_carry_trouble_fn(void *ctx, const char *link, const struct mr_error *err);
/* Carries the mail of one link. Each message arrives once, even if several carriers run or are killed. MR_OK also when
 * single messages could not be carried. An error: the other room cannot be used at all; *ret has what was carried
 * before. */
MR_API enum mr_rc mr_carry(struct mr_room *room, const char *link, unsigned ways, mr_carry_trouble_fn *trouble,
    void *ctx, struct mr_carried *ret, struct mr_error *err);

/* ---- Is there mail? ---- */

/* Counts the unread mail of the agent itself. Control messages, which wait for a patrol, do not count, nor do
 * unreadable files, each of which is reported to `trouble` (may be NULL). */
MR_API enum mr_rc mr_check(struct mr_room *room, const char *agent, mr_trouble_fn *trouble, void *ctx,
    size_t *ret_unread, struct mr_error *err);

/* ---- Small helpers ---- */

/* Checks an agent's address; err says what is allowed. */
MR_API enum mr_rc mr_address_check(const char *address, struct mr_error *err);
/* "90s", "30m", "2h", "7d", "1w", or plain seconds. */
MR_API enum mr_rc mr_duration_parse(const char *text, int64_t *ret_ms, struct mr_error *err);
/* RFC 3339, "YYYY-MM-DD", or a duration before now. */
MR_API enum mr_rc mr_time_parse(const char *text, int64_t *ret_ms, struct mr_error *err);
MR_API void mr_names_done(struct mr_names *names);

#ifdef __cplusplus
}
#endif
#endif
