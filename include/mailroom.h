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
 * - What you receive through a ret_ parameter is yours: finish it with the _done, _free or _close
 *   of its kind. What is returned, or handed to a callback, is borrowed. What you pass in stays yours.
 * - A list, struct { void *own; ITEM *v; size_t n; }, holds what the room's own records bound: agents, tokens, types.
 *   It is sorted, and is finished with mr_list_done, whichever its items are. Messages are streamed to a callback.
 * - ret_ parameters are untouched on failure. Destructors accept NULL and zeroed objects.
 * - Every function that can fail returns enum mr_rc and fills in the struct mr_error on your stack.
 * - The library never prints, never exits and never reads the environment. It is single-threaded
 *   per room handle; open one handle a thread.
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

enum MR_NODISCARD mr_rc { /* named after what the caller can do next */
	MR_OK = 0,
	MR_EMPTY,       /* nothing there: no mail, queue empty, wait timed out */
	MR_NOTFOUND,    /* no such message, agent, group, room */
	MR_REFUSED,     /* our rules or the room's policy say no: change the request */
	MR_UNTRUSTED,   /* the room was found, not named, and this user has not trusted it: see mr_trust_add */
	MR_UNSUPPORTED, /* this kind of room cannot do that */
	MR_EXISTS,      /* that name is taken: pick another */
	MR_BUSY,        /* someone holds it: try again */
	MR_INDOUBT,     /* accepted in part, will be completed: do not repeat without a key */
	MR_FULL,        /* no space or quota: nothing was delivered */
	MR_CORRUPT,     /* the bytes break the format: kept, reported, skipped */
	MR_NOMEM,       /* out of memory: state is as before the call */
	MR_IO,          /* the kernel refused: sys_errno says why */
	MR_STOPPED,     /* mr_progress_fn wanted it so: nothing is half done */
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

enum mr_proof {        /* in a room that several users share, or whose database checks logins: */
	MR_PROOF_NONE, /* it is not shared */
	MR_PROVEN,     /* the file belongs to the user who is its sender; the login was checked */
	MR_UNPROVEN,   /* it does not, or nobody can tell: anybody may have written it */
};

struct mr_attachment {             /* a part of a message that is not its text */
	const char *name;          /* as its sender wrote it, one line, "" for none: not to be taken for a path */
	const char *type;          /* "image/png" */
	uint64_t size_bytes;       /* decoded */
	uint64_t at, stored_bytes; /* where in the stored message, */
	int encoding;              /* and how: for mr_attachment_save */
};
struct mr_content; /* a stored body, of which only the text is in memory */

struct mr_message { /* one recipient's view of a message; all strings belong to it */
	char id[MR_ID_LEN + 1];
	const char *from; /* never NULL, like all strings here; "" when missing */
	struct mr_names to, cc;
	const char *subject;
	int64_t date_ms;
	const char *type;
	bool type_by_subject; /* nothing but the subject says the type */
	enum mr_priority priority;
	const char *thread;   /* id or word; own id (foreign mail: Message-ID) when it starts one */
	const char *reply_to; /* id of the message answered, or "" */
	const char *replace_key;
	unsigned sender_life;  /* 0: unknown */
	enum mr_proof proof;   /* of from */
	int64_t by_ms;         /* an answer was asked for by then; 0: not */
	int64_t not_before_ms; /* work that nobody can claim earlier; 0: at once */
	unsigned flags;        /* enum mr_flag */
	enum mr_folder folder;
	unsigned attempt;             /* how often it was handed out and not released; held mail: this time included */
	int64_t released_ms;          /* when its last holder released it; 0: not */
	bool look;                    /* of a list of names: only the text says where in a list it belongs */
	char token[MR_TOKEN_LEN + 1]; /* of the claim, when it is held under a lease */
	const char *body;             /* decoded; NULL when only headers were asked for */
	size_t body_len;
	const struct mr_attachment *attachments; /* known when the body is */
	size_t attachments_n;
	struct mr_content *content;      /* what a body with more than text is written from; NULL: text alone */
	size_t size_bytes;               /* of the stored message */
	const struct mr_header *headers; /* all of them, in order */
	size_t headers_n;
	const struct mr_header *envelope; /* lines of the format's own that no field here holds; never carried */
	size_t envelope_n;
	size_t place;     /* from 1, in a file that holds a whole inbox, what is no message counted; 0: has none */
	const char *path; /* where it is, relative to the room; for people, not for parsing */
	void *own;        /* what the strings live in */
};

MR_API void mr_message_done(struct mr_message *msg);
/* The value of the first header of that name (any case), or NULL. */
MR_API const char *mr_message_header(const struct mr_message *msg, const char *name);
/* A message as other mail programs write it, from an open file that stays as it is until mr_message_done. Addresses of
 * the room `name` lose their @name; "" for none. */
MR_API enum mr_rc mr_message_read(int fd, const char *name, struct mr_message *ret, struct mr_error *err);
/* Attachment number i of a message that was fetched, decoded, into a new file in that folder. Its name there is made
 * safe: no path, no leading dot or dash, nothing invisible; where it is taken, another one. */
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
	mr_trace_fn *trace; /* every operation of the room, one line each */
	void *trace_ctx;
	bool no_recover; /* do not complete what crashed commands left behind */
	bool no_index;   /* look through all mail, also where the room has an index */
	bool must_exist; /* MR_NOTFOUND also where the first message would make the place */
	bool found; /* nobody named this room, it lay on the way (mr_place.found): MR_UNTRUSTED unless the user trusts
		       it */
	const char *state_dir; /* where mailroom may keep what is no room's own (copies of broken files), or NULL */
	const char
	    *config_dir; /* the user's configuration: what rooms are trusted and what they may start; NULL: none */
	const char *trust_paths; /* further rooms that are trusted, by path, with ":" between them; or NULL */
	const char *data_dir; /* what comes with mailroom (types/PACK/TYPE); with ":" between several: the first that is
				 there; one that begins with "@/": from the folder of this program; NULL: none */
	const char
	    *pool; /* of a room in a database: a pool of connections for what is short, in libpq's words; or NULL */
	const struct mr_env *env;           /* a hint: who will act, for rooms that are far away; or NULL */
	const struct mr_names *expects;     /* a hint: names, ids and tokens that will be asked for; or NULL */
	const struct mr_init_options *init; /* only by mr_room_init, for rooms that are no folders: make it */
};

/* spec is KIND:WHERE or a path (then the kind is maildir). */
MR_API enum mr_rc mr_room_open(
    const char *spec, const struct mr_room_options *options, struct mr_room **ret_room, struct mr_error *err);
MR_API void mr_room_close(struct mr_room *room);
MR_API const char *mr_room_name(const struct mr_room *room);
MR_API const char *mr_room_spec(const struct mr_room *room); /* "maildir:/path/.mailroom" */
MR_API const char *mr_room_kind(const struct mr_room *room);
/* The variable in which the programs of that kind of room look for who acts; NULL: none. */
MR_API const char *mr_spec_agent_variable(const char *spec);
enum mr_has {                /* what a room may have */
	MR_HAS_NAMES = 1,    /* its mail says whose it is. A plain Maildir's does not: mr_export_options.agent has to */
	MR_HAS_LIVES = 2,    /* else its agents have no life, process or last sign, as in the rooms of other programs */
	MR_HAS_REGISTRY = 4, /* agents can register in it */
	MR_HAS_INDEX = 8,    /* mr_index_update made one */
	MR_HAS_PACKS = 16,   /* mail of it was packed once: mr_pack */
	MR_HAS_LINKS = 32,   /* links to other rooms that the user's configuration allows */
	MR_HAS_FAR_LINKS = 64, /* ... to rooms of a kind that only mailroom-full opens */
};
/* Has it one of these? */
MR_API bool mr_room_has(struct mr_room *room, unsigned what);
/* MR_UNSUPPORTED: it has none of these folders (enum mr_folder). */
MR_API enum mr_rc mr_room_folders(const struct mr_room *room, unsigned folders, struct mr_error *err);
/* What commands on this handle had to leave out, because another user of a shared room has closed it: a sentence each.
 * Borrowed. */
MR_API const struct mr_names *mr_room_barred(const struct mr_room *room);
/* The value of a line of the room's settings, or NULL. */
MR_API const char *mr_room_setting(const struct mr_room *room, const char *name);

struct mr_storage { /* what a power cut may do here, as far as the kernel tells */
	char file_system[32];
	bool power_safe;
	char reason[160]; /* when not: what is missing */
	char sync[8]; /* how accepted mail is made durable: "full", "fast" or "none"; "": the kind has no such choice */
	char sync_reason[160]; /* when the room's settings leave it open (Sync: auto or fast): why */
	char copies[160];      /* of what was accepted, in a sentence; "": the kind keeps files */
	bool one_copy;         /* there is no other than that of the server */
};
MR_API enum mr_rc mr_room_storage(struct mr_room *room, struct mr_storage *ret, struct mr_error *err);

struct mr_place {       /* how a room was found; finish with mr_place_done */
	char *spec;     /* of the room used */
	char *why;      /* a sentence: "--room", "$MAILROOM", "nearest .mailroom above /a/b", ... */
	char *warning;  /* a second room on the way, a room that git tracks, ...; NULL: none */
	char *worktree; /* top of the git worktree of cwd, else cwd */
	bool found;     /* by looking around: to be passed on as mr_room_options.found */
	bool tracked;   /* git has it in its index, as far as that was looked for */
};
/* option and env may be NULL; cwd, too: the folder in which this process is. Without `warns` nothing is looked for that
 * only warns: then the worktree may be NULL. MR_NOTFOUND comes with the hint to run init. */
MR_API enum mr_rc mr_room_find(
    const char *option, const char *env, const char *cwd, bool warns, struct mr_place *ret, struct mr_error *err);
/* Fills in the worktree of the working folder, where mr_room_find left it out. */
MR_API enum mr_rc mr_place_worktree(struct mr_place *place, struct mr_error *err);
MR_API void mr_place_done(struct mr_place *place);

struct mr_init_options {
	const char *name; /* of the room; NULL: the folder's name */
	bool share_group;
	const char *sync;           /* "auto" (NULL), "full", "fast", "none" */
	const char *config_dir;     /* where it is noted that this user made the room and trusts it; NULL: nowhere */
	struct mr_error *ret_trust; /* NULL, or filled in: MR_OK, or why the room is not trusted */
	bool upgrade;               /* a room in a database: bring it up to this version */
	const char
	    *roles; /* a room in a database: "LOGIN=AGENT,...", logins that act for some agents only; NULL: none */
};
/* Makes a room in `where` (NULL: main worktree of cwd's repository, else cwd), a folder or "postgres:...". An existing
 * room is MR_EXISTS and ret_path still names it. */
MR_API enum mr_rc mr_room_init(
    const char *where, const char *cwd, const struct mr_init_options *options, char **ret_path, struct mr_error *err);

/* ---- Trust, and the user's configuration ----
 *
 * A room is data: nothing that lies in it starts a program or touches another room. What may do so stands in the user's
 * configuration, one file of "Name: value" lines a room, and counts only for the very folder that it was written for:
 * its path, device, inode and the identity that init wrote into it must all fit. mailroom-config(5) lists the names. */

enum mr_trust {
	MR_TRUST_NONE,
	MR_TRUST_NAMED,    /* --room or $MAILROOM named it: it is read and written, no more */
	MR_TRUST_VARIABLE, /* mr_room_options.trust_paths has its path */
	MR_TRUST_USER,     /* mr_trust_add */
	MR_TRUST_INIT,     /* this user's init made it here */
};
MR_API const char *mr_trust_word(enum mr_trust trust);
/* Why this room is used. *ret_since_ms: since when it is trusted, 0 where nothing says so. */
MR_API enum mr_trust mr_room_trust(struct mr_room *room, int64_t *ret_since_ms);
/* Trusts this very room from now on. What an earlier record of the same identity allowed goes on if that record's room
 * is gone, because then this one was moved; a copy beside it gets an identity of its own. */
MR_API enum mr_rc mr_trust_add(struct mr_room *room, struct mr_error *err);

struct mr_trust_record {
	const char *spec; /* of the room */
	enum mr_trust by; /* MR_TRUST_NONE: there are settings for a room that was only named */
	int64_t since_ms;
	bool gone; /* no room with that identity is at that place */
};
MR_LIST(mr_trusted, struct mr_trust_record);
/* All of this user's, that of one room (spec, else NULL), or those whose room is gone. `drop`: what it returns is
 * removed, the configuration of the room with it. */
MR_API enum mr_rc mr_trust_list(
    const char *config_dir, const char *spec, bool gone_only, bool drop, struct mr_trusted *ret, struct mr_error *err);

MR_LIST(mr_settings, struct mr_header); /* in the order of the file */
MR_API enum mr_rc mr_config_list(struct mr_room *room, struct mr_settings *ret, struct mr_error *err);
/* The first line of that name that counts for this room, or NULL. */
MR_API const char *mr_config_get(struct mr_room *room, const char *name);
/* Replaces every line of that name, or with `add` adds one. value NULL removes them: MR_NOTFOUND if there are none.
 * room NULL: the line is only checked. */
MR_API enum mr_rc mr_config_set(
    struct mr_room *room, const char *name, const char *value, bool add, struct mr_error *err);
/* These lines in the place of all that there are, or nothing. */
MR_API enum mr_rc mr_config_replace(
    struct mr_room *room, const struct mr_header *lines, size_t n, struct mr_error *err);

struct mr_leftover {              /* a line in the room that earlier builds obeyed, and that counts for nothing now */
	const char *where;        /* "room", "agents/bob/agent", "types/MERGED", "links/blue" */
	const char *line;         /* as it stands there: "Notify: beep" */
	const char *name, *value; /* what it would be in the user's configuration */
};
MR_LIST(mr_leftovers, struct mr_leftover);
/* Those that the configuration does not have already. */
MR_API enum mr_rc mr_config_leftovers(struct mr_room *room, struct mr_leftovers *ret, struct mr_error *err);

/* ---- Who is who ---- */

struct mr_process {      /* a process that can be told apart from a later one with its number */
	int64_t pid;     /* 0: none */
	uint64_t start;  /* start time in clock ticks since boot, as the initial time namespace counts them */
	uint64_t pid_ns; /* inode of its pid namespace */
	char boot[40];   /* boot id */
};

/* UNKNOWN: a life without a process, or with one that cannot be judged from here (another container or machine) */
enum mr_presence { MR_GONE, MR_UNKNOWN, MR_LIVE };

/* Through what a life was seen last. UNKNOWN: an earlier version or another program wrote that down. */
enum mr_door { MR_DOOR_UNKNOWN, MR_DOOR_LIBRARY, MR_DOOR_COMMAND, MR_DOOR_HOOK, MR_DOOR_MCP, MR_DOOR_HTTP };
MR_API const char *mr_door_word(enum mr_door door); /* "command", "hook", "mcp", "http", "library", or "" */

struct mr_agent { /* a registered name and its newest life; finish with mr_agent_done */
	char name[MR_ADDRESS_MAX + 1];
	unsigned life; /* 0: nobody has lived here yet (a mailbox made by --hold, the operator) */
	int64_t created_ms;
	int64_t started_ms; /* of the life */
	int64_t seen_ms;    /* last command of the life */
	enum mr_door door;  /* by which it was seen then */
	struct mr_process process;
	const char *worktree; /* never NULL */
	const char *session;  /* "claude-code-<id>", or "" */
	const char *host;
	const char *role; /* free text given at registration */
	const char *wake; /* what an earlier build wrote into its registration, or "": it is never run */
	bool others;      /* in a room that several users share: another user's, or nobody can tell whose */
	bool stray; /* in the room of another program: a mailbox of nobody on its list of members; @all passes by */
	void *own;
};
MR_API void mr_agent_done(struct mr_agent *agent);
MR_API enum mr_presence mr_agent_presence(const struct mr_agent *agent);

struct mr_env {                    /* what "who am I" may look at; the caller fills it from its own environment */
	const char *as;            /* --as */
	const char *session;       /* "<harness>-<session id>", or NULL */
	bool session_aged;         /* ... was true when this process began: of an earlier session, or an outer one? */
	bool two_sessions;         /* of two harnesses: none is taken, and a process above us says nothing either */
	bool outside;              /* nothing tells of a harness around us: the terminal may say who we are */
	const char *agent;         /* $MAILROOM_AGENT or a variable of another system */
	const char *agent_source;  /* name of that variable, for messages */
	const char *worktree;      /* top of the worktree of the working folder */
	const char *state_dir;     /* where session bindings live, or NULL: none */
	struct mr_process process; /* the harness process, if one is known */
	bool hooked;               /* its harness says when a session goes on in another process: no need to look */
	const char *tmux;          /* socket of the tmux server around us, or NULL */
	const char *tmux_pane;     /* the pane there, such as "%3", or NULL */
	bool shared;               /* the process runs the sessions of several terminals: it says nothing of this one */
	const char *inherited;     /* other sessions that the environment of a hook names, blanks between; or NULL */
};

struct mr_self {
	char agent[MR_ADDRESS_MAX + 1];
	unsigned life;
	bool bound;        /* this harness session is bound to the agent */
	bool explicit_as;  /* by --as: a person or script says so */
	bool hooked;       /* hooks of the session see what its model gets of each tool */
	bool unconfirmed;  /* mail was shown and it is not known yet that the model got it: mr_confirm */
	enum mr_door door; /* through which it acts; the caller may say it */
	char session[160];
	char how[200]; /* a phrase: "--as", "session claude-code-1234 is bound to it", ... */
};

/* The order of DESIGN: --as; the session's binding, or that of the nearest bound harness process above us; the
 * variable; outside of a harness the one agent that this terminal registered, or that was registered from this
 * worktree; the worktree's one agent whose life is gone. Binds an unbound session where that order says so.
 * MR_NOTFOUND: nobody; the hint is the exact line to type. MR_REFUSED: fenced by a newer life, or live in another
 * session. */
MR_API enum mr_rc mr_self_resolve(
    struct mr_room *room, const struct mr_env *env, struct mr_self *ret, struct mr_error *err);
/* The usual case of it, in a few looks and without env->process: the session is bound, to the newest life of its agent,
 * by a process that is still there. Nothing is changed. False: mr_self_resolve must tell. */
MR_API bool mr_self_bound(struct mr_room *room, const struct mr_env *env, struct mr_self *ret);
/* Plain: that agent, its newest life. */
MR_API enum mr_rc mr_self_named(struct mr_room *room, const char *agent, struct mr_self *ret, struct mr_error *err);
/* Now, by self->door; UNKNOWN is LIBRARY. Written down every few seconds at most. */
MR_API void mr_self_seen(struct mr_room *room, const struct mr_self *self);

struct mr_registration {
	unsigned life;
	bool created;   /* the name is new */
	bool continued; /* this session already was that agent: same life */
	bool bound;     /* later commands of this session, or of this terminal, are this agent without being told */
	size_t here;    /* outside of a harness: how many agents this terminal has registered by now */
	size_t unread;
	size_t returned;      /* held mail of the last life that came back */
	size_t returned_work; /* and work of queues that went back to them */
};
struct mr_register_options {
	const char *role;
	bool takeover; /* also when the last life is still there */
};
MR_API enum mr_rc mr_register(struct mr_room *room, const char *name, const struct mr_env *env,
    const struct mr_register_options *options, struct mr_registration *ret, struct mr_error *err);

MR_LIST(mr_agents, struct mr_agent);
MR_API enum mr_rc mr_agent_list(struct mr_room *room, struct mr_agents *ret, struct mr_error *err);
MR_API enum mr_rc mr_agent_get(struct mr_room *room, const char *name, struct mr_agent *ret, struct mr_error *err);

/* ---- Tokens: who asks through a door of the network ---- */

#define MR_SECRET_LEN 40
struct mr_token {
	char name[65]; /* a hash of the token, which opens nothing; its first digits will do for mr_token_revoke */
	char agent[MR_ADDRESS_MAX + 1]; /* who its bearer is */
	bool read_only;
	bool browser;                   /* the cookie of one */
	int64_t created_ms, expires_ms; /* expires 0: never */
};
/* Keeps a hash of it. ret_secret is the token: it cannot be had again. MR_UNSUPPORTED: the room has no records. */
MR_API enum mr_rc mr_token_create(struct mr_room *room, const struct mr_token *what, char ret_secret[MR_SECRET_LEN + 1],
    struct mr_token *ret, struct mr_error *err);
/* MR_NOTFOUND: never made here, revoked, its time is up, or its agent was pruned and the name taken again. */
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
	int64_t stale_ms;         /* unseen for that long; 0: only names */
	bool dry_run;
	bool force; /* also live ones, also more than half */
};
struct mr_pruned {
	char name[MR_ADDRESS_MAX + 1];
	int64_t seen_ms;
	size_t dead;     /* unread mail that went to dead letters */
	size_t returned; /* work that went back to queues */
};
MR_LIST(mr_prunings, struct mr_pruned);
/* Those that were pruned, or would be; also filled in when it ends early. ret may be NULL. */
MR_API enum mr_rc mr_prune(
    struct mr_room *room, const struct mr_prune_options *options, struct mr_prunings *ret, struct mr_error *err);

/* ---- Sending ---- */

struct mr_draft {
	const char *const *to; /* NULL-terminated; addresses */
	const char *const *cc; /* NULL-terminated, or NULL */
	const char *subject;   /* NULL: the body's first line */
	const char *body;
	size_t body_len;
	const char *const *attach;     /* paths of files, NULL-terminated, or NULL; together at most MR_ATTACH_MAX */
	const struct mr_message *mime; /* or all that this message holds as it is (mr_message_read); body is its text */
	const char *type;              /* checked by its definition, if the room knows one */
	const struct mr_header *fields; /* of the type, from which subject and text are made; `body` follows them */
	size_t fields_n;
	bool force; /* also what its type does not allow */
	enum mr_priority priority;
	bool priority_given; /* MR_NORMAL is meant: not what the type has by itself */
	const char *thread;
	const char *reply_to;            /* id in the sender's mailbox (any folder) */
	const struct mr_header *headers; /* extra; names are checked */
	size_t headers_n;
	const char *key;         /* a retry with the same key is safe */
	const char *replace_key; /* retires the sender's older unread mail with that key */
	int64_t by_ms;           /* time by which an answer is wanted; 0: none */
	int64_t not_before_ms;   /* to a queue: nobody can claim it earlier; 0: at once */
	const char *reply_path;  /* for a sender without a mailbox: the folder where the answer shall be put; or NULL */
	bool hold;               /* make missing mailboxes */
	bool only;               /* an answer: older questions of the same conversation stay open */
	bool no_text;            /* an empty text is meant */
	bool no_subject;         /* an empty subject is meant: no line of the text makes one */
	bool dry_run;
};

struct mr_fields; /* see below */
struct mr_receipt {
	char id[MR_ID_LEN + 1];
	struct mr_names to;       /* who gets it, resolved, each once */
	struct mr_names not_live; /* those whose life is gone or who never lived; not looked up for more than 16 */
	struct mr_names missing;  /* with MR_INDOUBT: who has not got it yet */
	struct mr_names trouble;  /* members of groups that reach nobody, a sentence each */
	struct mr_names warnings; /* what is against the rules of its type and was sent all the same, a sentence each */
	struct mr_names
	    superseded;           /* ids of older questions of the same sender that got an empty answer with this one */
	bool repeated;            /* the key was known: this is the earlier message's id */
	size_t retired;           /* by replace_key */
	struct mr_fields *fields; /* of a message with a type, those that it was given included; or NULL */
	char *warning;            /* said once a life: a setting of the room that counts for nothing; or NULL */
	char *notify;             /* the user's Notify: command for this room, to be run for the operator; or NULL */
};
MR_API enum mr_rc mr_send(struct mr_room *room, const struct mr_self *self, const struct mr_draft *draft,
    struct mr_receipt *ret, struct mr_error *err); /* also filled in with MR_INDOUBT */
MR_API void mr_receipt_done(struct mr_receipt *receipt);
/* Many messages, each as mr_send does it, in order, but made durable in groups: some hundred then cost as many waits
 * for the disk as one alone. What is refused does not hold up the others. When this returns, every message whose rc is
 * MR_OK is on stable storage; within the call they may become visible in another order, and after a crash in it some
 * are there, each whole, and the others not. Messages with several recipients, a key, a deadline, for queues and
 * channels, and in the rooms of other programs go one by one: right, but not faster. Pass some hundred at a time:
 * nothing is told before all are done. */
struct mr_sent {
	enum mr_rc rc;
	struct mr_receipt receipt; /* with MR_OK and MR_INDOUBT; mr_receipt_done it in any case */
	struct mr_error error;
};
MR_API void mr_send_many(struct mr_room *room, const struct mr_self *self, const struct mr_draft *drafts, size_t n,
    struct mr_sent *ret); /* n of them, all filled in */
/* Answers a message: one "Re:", thread and references kept, the original marked replied.
 * draft->to NULL: the original's sender; `all` adds its other recipients. */
MR_API enum mr_rc mr_reply(struct mr_room *room, const struct mr_self *self, const char *id,
    const struct mr_draft *draft, bool all, struct mr_receipt *ret, struct mr_error *err);

/* ---- Looking (never consumes) ---- */

struct mr_filter {        /* { 0 } lets everything through */
	unsigned folders; /* enum mr_folder; 0: MR_INBOX */
	bool unread;      /* only mail without MR_SEEN */
	bool seen;        /* only mail with it */
	bool no_control;  /* not what mr_is_control is true for, except in MR_SENT */
	unsigned life;    /* not the hand-off that this life of the agent left for the next one; 0: that, too */
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
/* Messages with headers; bodies too when `bodies`. Streams: with the first two orders nothing is
 * collected but names. Corrupt or unreadable mail is reported to `trouble` (may be NULL) and skipped. */
typedef void mr_trouble_fn(void *ctx, const char *path, const struct mr_error *err);
struct mr_scan {
	struct mr_filter filter;
	enum mr_order order;
	bool bodies;
	bool names;   /* ids are enough: of a large mailbox where names tell the order, only those are filled in */
	size_t limit; /* 0: no limit */
	/* Or NULL. Asked of an id before its message is opened, maybe more than once: false leaves it out. Rooms whose
	 * names do not tell ids show it all the same. */
	bool (*wants)(void *ctx, const char *id);
	/* Or NULL. Where names tell it, the number of messages is put here before the first is shown, and no more than
	 * `screen` are shown; elsewhere it is untouched and all are. */
	size_t *ret_total;
	size_t screen;
	mr_trouble_fn *trouble;
	void (*looked)(void *ctx, size_t n); /* after every 1,000 messages that were looked at; or NULL */
};
MR_API enum mr_rc mr_scan(struct mr_room *room, const char *agent, const struct mr_scan *scan, mr_message_fn *fn,
    void *ctx, struct mr_error *err);
/* id may be the last 6 characters or more. Ambiguous: MR_REFUSED, the hint lists them. */
MR_API enum mr_rc mr_fetch(
    struct mr_room *room, const char *agent, const char *id, struct mr_message *ret, struct mr_error *err);
/* The bytes as they are stored, piece by piece. */
typedef enum mr_rc mr_bytes_fn(void *ctx, const char *bytes, size_t n, struct mr_error *err);
MR_API enum mr_rc mr_fetch_raw(
    struct mr_room *room, const char *agent, const char *id, mr_bytes_fn *fn, void *ctx, struct mr_error *err);
/* Full id for a short one, over the given folders (0: all). */
MR_API enum mr_rc mr_resolve_id(struct mr_room *room, const char *agent, const char *id, unsigned folders,
    char ret_id[MR_ID_LEN + 1], struct mr_error *err);

/* ---- Showing, then consuming (promise 9) ---- */

struct mr_show; /* mail that this process is showing; the kernel gives it back if the process dies */
/* Before it is taken, each message is judged: of one that is not wanted, and of one that cannot be read and is told to
 * `trouble`, mr_show_take returns MR_EMPTY. */
struct mr_show_choice {
	mr_message_fn *wanted;
	mr_trouble_fn *trouble;
	void *ctx; /* of both */
};
/* choice NULL: all is wanted. */
MR_API enum mr_rc mr_show_open(struct mr_room *room, const struct mr_self *self, const struct mr_show_choice *choice,
    struct mr_show **ret, struct mr_error *err);
/* Unread mail: taken out of everyone else's sight. Seen mail is just fetched. MR_BUSY: another
 * command is showing or working on it (ret_msg is filled in all the same: looking is free). */
MR_API enum mr_rc mr_show_take(struct mr_show *show, const char *id, struct mr_message *ret_msg, struct mr_error *err);
MR_API enum mr_rc mr_show_back(struct mr_show *show, const char *id, struct mr_error *err);
/* stdout took all that is still taken: mark it seen (and archive it), durably. MR_REFUSED: this
 * life was fenced meanwhile; the new one gets the mail. */
MR_API enum mr_rc mr_show_finish(struct mr_show *show, bool archive, size_t *ret_marked, struct mr_error *err);
MR_API void mr_show_close(struct mr_show *show); /* gives back what was not finished */

/* ---- Work: recv, then done ---- */

struct mr_queue_left {                                  /* of a queue, still to be done */
	size_t ready, reserved, delayed, claimed, mine; /* reserved: for another; mine: of the claims, the asker's */
};
struct mr_claim {
	char token[MR_TOKEN_LEN + 1];
	char id[MR_ID_LEN + 1];
	unsigned attempt;          /* 1 for the first claim; one that was released does not count */
	unsigned attempts;         /* by mr_queue_recv: how many there are in this queue; 0: no limit */
	int64_t deadline_ms;       /* wall clock; for people */
	struct mr_queue_left left; /* by mr_queue_recv with MR_EMPTY: what may still come */
	char skipped[240];         /* by mr_queue_recv: what was met on the way and cannot be read, a sentence; or "" */
};
/* The next unread message by MR_WORK_ORDER that passes the filter. MR_EMPTY: none. */
MR_API enum mr_rc mr_recv(struct mr_room *room, const struct mr_self *self, const struct mr_filter *filter,
    int64_t lease_ms, struct mr_claim *ret_claim, struct mr_message *ret_msg, struct mr_error *err);
/* `what` is a token, or an id (short or full) on which this life holds exactly one claim. result NULL: there is none.
 * Else the sender gets it first, an answer in the thread, then the work is done. Of the draft only the text and its
 * type count. Killed in between, repeating it sends nothing twice: the claim is the key. With MR_OK err->hint says that
 * nobody was told, where the sender is gone; ret_answer is "" then. Without a result it is not touched. */
MR_API enum mr_rc mr_claim_done(struct mr_room *room, const struct mr_self *self, const char *what,
    const struct mr_draft *result, char ret_id[MR_ID_LEN + 1], char ret_answer[MR_ID_LEN + 1], struct mr_error *err);
struct mr_release {
	const char *reason; /* work of a queue: kept with its past; or NULL */
	const char *to;     /* work of a queue: until to_ms from now only this agent may claim it; or NULL */
	int64_t to_ms;      /* 0: as long as a lease of the queue */
	bool unseen;        /* nobody saw it: it goes to where it was, and was an attempt */
};
/* Back among what waits, behind all of it. It is no attempt, and this agent gets it again only when nothing else is
 * there. how NULL: nothing more is said. The operator may put back work of a queue that another holds: the late `done`
 * of that one finds nothing. */
MR_API enum mr_rc mr_claim_release(struct mr_room *room, const struct mr_self *self, const char *what,
    const struct mr_release *how, char ret_id[MR_ID_LEN + 1], struct mr_error *err);
/* Final: the sender gets a bounce with the reason, the mail goes to dead letters. With MR_OK err->hint says that
 * nobody was told, where the sender is gone; else it is "". */
MR_API enum mr_rc mr_claim_fail(struct mr_room *room, const struct mr_self *self, const char *what, const char *reason,
    char ret_id[MR_ID_LEN + 1], struct mr_error *err);
MR_API enum mr_rc mr_claim_extend(struct mr_room *room, const struct mr_self *self, const char *what, int64_t lease_ms,
    struct mr_claim *ret, struct mr_error *err);

/* ---- State ---- */

MR_API enum mr_rc mr_mark(struct mr_room *room, const struct mr_self *self, const char *id, unsigned set,
    unsigned clear, struct mr_error *err);
MR_API enum mr_rc mr_archive(struct mr_room *room, const struct mr_self *self, const char *id, struct mr_error *err);
struct mr_packed {
	size_t messages;                    /* that went into the pack, or came out of it */
	size_t total;                       /* that are in it now */
	size_t left;                        /* unread or pinned ones, or of other users: they stay files */
	uint64_t bytes_before, bytes_after; /* on the disk: of the files that were packed, of the pack */
};
/* Puts a month of self's archive, "2026-01", into one compressed mbox, which is read like the files; or back into
 * files. Packed mail cannot be marked or moved. MR_UNSUPPORTED: only the program mailroom-full can. */
MR_API enum mr_rc mr_pack(struct mr_room *room, const struct mr_self *self, const char *month, bool unpack,
    struct mr_packed *ret, struct mr_error *err);
/* Removes all mail of self's inbox for good, read or not: what some programs do with theirs. */
MR_API enum mr_rc mr_clear(struct mr_room *room, const struct mr_self *self, size_t *ret_removed, struct mr_error *err);
/* Makes the marks and moves since the last call durable. Commands call it once at their end. */
MR_API enum mr_rc mr_flush(struct mr_room *room, struct mr_error *err);
struct mr_purged {               /* finish with mr_purged_done */
	size_t removed;          /* copies */
	struct mr_names told;    /* who had it unread, and got a mail that says so */
	struct mr_names carried; /* AGENT@LINK: a copy is in that room, and is not removed there */
	char *warning;           /* it is removed, but its tombstone cannot be kept, or somebody not be told; or NULL */
};
/* Removes a message from every mailbox and leaves a tombstone. MR_REFUSED: only its sender and the operator may. Cut
 * off, or without space for all of it, it is completed by the same call. */
MR_API enum mr_rc mr_purge(struct mr_room *room, const struct mr_self *self, const char *id, const char *reason,
    struct mr_purged *ret, struct mr_error *err); /* ret may be NULL */
MR_API void mr_purged_done(struct mr_purged *purged);

/* ---- Waiting ---- */

/* Returns as soon as unread mail passes the filter: at once if there is some. timeout_ms 0 looks
 * once. MR_EMPTY: the time is up. ret_nudge not NULL: a nudge ends it, too, and it says which of the two it was.
 * Nothing is consumed. */
MR_API enum mr_rc mr_wait(struct mr_room *room, const char *agent, const struct mr_filter *filter, int64_t timeout_ms,
    bool *ret_nudge, struct mr_error *err);

/* The whole room, for one that shows it: true when mail, marks, work or agents may have changed, false when the time is
 * up. It is armed from mr_watch_open on: look after it. The room must be no handle that is used meanwhile. */
struct mr_watch;
MR_API enum mr_rc mr_watch_open(struct mr_room *room, struct mr_watch **ret, struct mr_error *err);
MR_API bool mr_watch_wait(struct mr_watch *watch, int64_t timeout_ms);
/* False: the kind of room tells nothing by itself; mr_watch_wait is true four times a second, and a look must tell. */
MR_API bool mr_watch_sees(const struct mr_watch *watch);
MR_API void mr_watch_close(struct mr_watch *watch);

/* Before waiting for an answer to `id` (mr_filter.reply_to): is there such a message of the agent's, in any
 * mailbox, and can an answer to it be told from other mail? MR_NOTFOUND, MR_UNSUPPORTED; MR_REFUSED: the agent is the
 * only one who can answer it. */
MR_API enum mr_rc mr_question(
    struct mr_room *room, const char *agent, const char *id, char ret_id[MR_ID_LEN + 1], struct mr_error *err);
/* For a sender without a mailbox (mr_draft.reply_path): waits for the answer to `id`, as mr_send returned it or as the
 * room calls it, in `dir` (NULL: where the send said). MR_EMPTY: the time is up. It stays there until mr_answer_taken,
 * which is for after it was shown. */
MR_API enum mr_rc mr_answer_wait(struct mr_room *room, const char *id, const char *dir, int64_t timeout_ms,
    struct mr_message *ret, struct mr_error *err);
MR_API enum mr_rc mr_answer_taken(struct mr_room *room, const char *id, const char *dir, struct mr_error *err);
/* Was `id` sent with a reply path from here, so that mr_answer_wait knows where to look? */
MR_API bool mr_answer_expected(struct mr_room *room, const char *id);

/* ---- What happened, and care ---- */

struct mr_trail {             /* one fact about a message, with its evidence */
	const char *agent;    /* whose copy, or "" */
	const char *state;    /* "unread", "read", "archived", "held", "sent", "dead", "retried", "dropped", "purged",
				 "pending", "nowhere", "announced", "answered"; a claim that is over "done", "released",
				 "failed",    "came back"; in a linked room "carried", "read", "vanished" */
	const char *evidence; /* a sentence */
	int64_t at_ms;        /* when that was, where somebody wrote it down; 0: nobody did */
};
struct mr_trails {
	void *own;
	struct mr_trail *v;
	size_t n;
};
/* All that is known of it. MR_NOTFOUND: nothing. */
MR_API enum mr_rc mr_why(
    struct mr_room *room, const struct mr_self *self, const char *id, struct mr_trails *ret, struct mr_error *err);
/* The states of a message that was sent, without evidence. Looks only into the mailboxes that it went to; when it is
 * not in one of them it is looked for everywhere, as by mr_why. */
MR_API enum mr_rc mr_became(struct mr_room *room, const struct mr_self *self, const struct mr_message *sent,
    struct mr_trails *ret, struct mr_error *err);

struct mr_due { /* an answer that did not come (send --by) */
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
/* Overdue answers of self. Each is returned until mr_overdue_told says that it was shown. */
MR_API enum mr_rc mr_overdue(
    struct mr_room *room, const struct mr_self *self, struct mr_dues *ret, struct mr_error *err);
MR_API void mr_overdue_told(struct mr_room *room, const struct mr_self *self, const char *id);

enum mr_severity { MR_FINE, MR_NOTE, MR_PROBLEM };
struct mr_finding { /* strings are never NULL when it is told */
	enum mr_severity severity;
	const char *code; /* a word: "modes", "leftovers", "storage", ... */
	const char *path; /* what it is about, below the room where it is in it; or "" */
	const char *what; /* is so */
	const char *why;  /* it came to be so, and what comes of it; or "" */
	const char *fix;  /* what to do, or what was done; or "" */
	bool fixed;       /* it was done: fix was asked for, and nothing was thrown away */
};
typedef void mr_finding_fn(void *ctx, const struct mr_finding *finding);
/* What was looked through and found fine within a day is not read again; a call that was stopped goes on from there. */
MR_API enum mr_rc mr_doctor(struct mr_room *room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err);

/* Calls that go over all of a room (mr_doctor, mr_export, mr_costs) say how far they are, often. total 0: unknown.
 * False stops the call as soon as nothing is half done: MR_STOPPED, and *err says how far it came. fn NULL: nobody is
 * told. */
typedef bool mr_progress_fn(void *ctx, const char *what, size_t done, size_t total);
MR_API void mr_room_on_progress(struct mr_room *room, mr_progress_fn *fn, void *ctx);

struct mr_cost {             /* of one kind of what a room keeps */
	const char *what;    /* "archive", "sent", "done", "dead", "records" */
	const char *setting; /* "Keep-Archive", which limits it; "": nothing does */
	const char *keep;    /* its value, or "" */
	size_t files;        /* messages; of records files */
	uint64_t bytes; /* on the disk, estimated from a sample of each folder; one file in two folders counts twice */
};
typedef void mr_cost_fn(void *ctx, const struct mr_cost *cost);
MR_API enum mr_rc mr_costs(struct mr_room *room, mr_cost_fn *fn, void *ctx, struct mr_error *err);

/* ---- What needs a person now ---- */

enum mr_need_kind {         /* in the order of the list, pressing ones before all others */
	MR_NEED_ANSWER,     /* mail to the operator that is unread, or waits for an answer */
	MR_NEED_OVERDUE,    /* a question between agents, past the time by which an answer was wanted */
	MR_NEED_UNREAD,     /* mail that has waited for long although its agent is not known to be gone */
	MR_NEED_LEASE,      /* a claim near or past the end of its lease */
	MR_NEED_ATTEMPT,    /* work in somebody's hands for the last time */
	MR_NEED_FAILED,     /* work of a queue that failed */
	MR_NEED_DEAD,       /* a dead letter of the room */
	MR_NEED_GONE,       /* an agent that is gone, with unread mail or work in its hands */
	MR_NEED_LINK,       /* a room that cannot be opened, or mail that waits to be carried there */
	MR_NEED_THROTTLED,  /* a thread that woke its agents too often */
	MR_NEED_UNREADABLE, /* a file that is no message */
	MR_NEED_KINDS
};
/* "answer", "overdue", "unread", "lease", "attempt", "failed", "dead", "gone", "link", "throttled", "unreadable" */
MR_API const char *mr_need_word(enum mr_need_kind kind);

struct mr_action {            /* one thing that can be done about it */
	const char *label;    /* a word for a button: "reply" */
	const char *words[5]; /* the command behind "mailroom", up to NULL: "reply", "01k9..." */
	bool text;            /* it wants a text, on standard input */
};
struct mr_need { /* strings are never NULL, "" where they do not apply */
	enum mr_need_kind kind;
	bool pressing; /* somebody waits, or is late */
	char id[MR_ID_LEN + 1];
	const char *agent; /* whose mailbox, who holds it, or who asked */
	const char *queue, *link, *thread, *path;
	const char *from, *subject;
	enum mr_priority priority;
	size_t count; /* how much of the same: unread mail of the agent, mail that waits for the link; or 0 */
	int64_t since_ms;
	int64_t due_ms;  /* an answer is wanted, or the lease ends, then; 0: no time was set */
	const char *why; /* the evidence, a sentence */
	struct mr_action actions[2];
	size_t actions_n;
};
struct mr_box { /* a mailbox, as its names tell it */
	const char *agent;
	size_t unread, urgent;
	size_t held;           /* in its hands: its own mail, and work of queues */
	size_t came, seen;     /* mail of the last minute that is still in its inbox, and how much of it was read */
	size_t archived, sent; /* of the last minute, when `minute` was asked for */
	int64_t oldest_ms;     /* of its unread mail; 0: none */
	char oldest[MR_ID_LEN + 1];
};
struct mr_attention { /* finish with mr_attention_done */
	int64_t at_ms;
	struct mr_need *needs; /* the most pressing first */
	size_t n;
	size_t total[MR_NEED_KINDS]; /* how many of each kind there are, however many are listed */
	size_t more;                 /* that are not listed */
	struct mr_box *boxes;        /* all mailboxes, by name */
	size_t boxes_n;
	size_t unread, held, dead; /* in the room; dead: failed work and dead letters */
	int64_t oldest_ms;         /* of all unread mail; 0: none */
	size_t came, seen;         /* mail of the last minute that is still in an inbox, and how much of it was read */
	void *own;
};
struct mr_attention_options { /* { 0 } is the default */
	int64_t unread_ms;    /* mail may wait so long; 0: 10 minutes */
	size_t limit;         /* of each kind at most so many are listed; 0: 20; at most 200 */
	bool minute;          /* what was archived and sent in the last minute is counted, too */
};
/* Changes nothing. Names tell what there is; opened is only what is listed, and a few of the operator's messages. */
MR_API enum mr_rc mr_attention(
    struct mr_room *room, const struct mr_attention_options *options, struct mr_attention *ret, struct mr_error *err);
MR_API void mr_attention_done(struct mr_attention *attention);

/* ---- A picture of who told whom ---- */

struct mr_lane { /* a column: an agent, "queue:Q", "channel:C", AGENT@LINK */
	const char *name;
	unsigned life;   /* of an agent: its newest; 0: none, or nothing is known */
	int64_t born_ms; /* when that began; 0: unknown */
	int64_t died_ms; /* its last sign, when it is known to be gone; 0: it is not */
};
struct mr_arrow { /* a message */
	char id[MR_ID_LEN + 1];
	const char *thread, *subject, *type;
	enum mr_priority priority;
	int64_t at_ms;
	size_t from;      /* a lane */
	const size_t *to; /* lanes, each once */
	size_t to_n;
	const bool *read; /* of each, whether it was read, worked off or answered there */
	bool answer;      /* it answers another message */
	bool question;    /* an answer was wanted by a time */
};
struct mr_bar { /* work in an agent's hands */
	char id[MR_ID_LEN + 1];
	size_t lane;
	int64_t from_ms, to_ms; /* to_ms 0: it still is */
	const char *how;        /* "held", or how it ended: "done", "released", "failed", "came back" */
};
struct mr_picture {             /* finish with mr_picture_done */
	const char *title;      /* the subject of the thread; "": a span of time */
	int64_t from_ms, to_ms; /* to_ms: now */
	struct mr_lane *lanes;
	struct mr_arrow *arrows; /* in the order of time */
	struct mr_bar *bars;
	size_t lanes_n, arrows_n, bars_n;
	size_t left_out; /* older messages */
	void *own;
};
struct mr_picture_options {
	const char *thread; /* its word, or a message in it, by the end of its id; NULL: all mail since then */
	int64_t since_ms;   /* 0: no limit for a thread, else an hour ago */
	size_t limit;       /* messages, the newest; 0: 200; at most 1000 */
};
/* The messages of the room, from whom to whom, as far as the mailboxes tell. `agent`: whose mailbox is asked first for
 * a short id. MR_NOTFOUND: no such thread. */
MR_API enum mr_rc mr_picture(struct mr_room *room, const char *agent, const struct mr_picture_options *options,
    struct mr_picture *ret, struct mr_error *err);
MR_API void mr_picture_done(struct mr_picture *picture);
/* As SVG: no script, all text escaped, light and dark by the reader's choice. An arrow leads to `link` and its id
 * ("/message/"; NULL: nowhere). Runs of messages are drawn as one from 60 messages on. The caller frees *ret. */
MR_API enum mr_rc mr_picture_svg(
    const struct mr_picture *picture, const char *link, char **ret, size_t *ret_len, struct mr_error *err);
/* As text for a terminal that is so many columns wide; in few columns a list. The caller frees *ret. */
MR_API enum mr_rc mr_picture_text(
    const struct mr_picture *picture, size_t columns, char **ret, size_t *ret_len, struct mr_error *err);

/* ---- An index of the mail ---- */

/* A cache: what it proposes is read from the mail itself, and without it everything is found all the same, slower. Only
 * the program mailroom-full can use one; elsewhere mr_index_update is MR_UNSUPPORTED. */
struct mr_indexed {
	size_t messages;       /* copies that the index knows now; 0: as many as before, nothing changed */
	size_t added, removed; /* by this call */
	bool rebuilt;          /* the old one could not be used */
};
typedef bool mr_index_fn(void *ctx, size_t added); /* now and then; false stops: the next call goes on there */
/* Is this the end of an id that neither the inbox nor held mail has, in a room with an index? mailroom-full knows it at
 * once, another program reads the names of the archive. */
MR_API bool mr_id_is_far(struct mr_room *room, const char *agent, const char *given);
/* Makes it, or brings it up to date. MR_BUSY: another process does; with `wait` that is waited for. MR_REFUSED: this
 * room must not have one, and why. */
MR_API enum mr_rc mr_index_update(
    struct mr_room *room, bool wait, mr_index_fn *progress, void *ctx, struct mr_indexed *ret, struct mr_error *err);
/* MR_NOTFOUND: there is none. */
MR_API enum mr_rc mr_index_drop(struct mr_room *room, struct mr_error *err);

/* ---- The verbs of another program ---- */

/* Does what the program whose format the room has would do, and returns what it would print. For programs that stand in
 * for that one; args ends with NULL. MR_UNSUPPORTED: that kind of room has no such verb. The caller frees *ret. */
MR_API enum mr_rc mr_room_face(struct mr_room *room, const char *verb, const char *const *args, const char *input,
    size_t input_len, char **ret, size_t *ret_len, struct mr_error *err);

/* ---- From room to room ---- */

struct mr_export_options {
	const char *const *agents; /* of the first room, NULL-terminated; NULL: all */
	const char *const *names;  /* "OLD=NEW": what an agent of the first room is called in the second; or NULL */
	const char *agent; /* the same for a room that is one agent's (a plain Maildir): the name it gets; or NULL */
	bool dry_run;
};
struct mr_export_step {
	size_t done, total;             /* messages */
	const char *agent;              /* of the first room */
	const char *what;               /* an id, or where the message is */
	const struct mr_error *trouble; /* it was skipped, and why; NULL: it went well */
};
typedef bool mr_export_fn(void *ctx, const struct mr_export_step *step); /* false stops, between two messages */
struct mr_exported {
	size_t copied;
	size_t there;   /* already, from an earlier run */
	size_t skipped; /* could not be read, or not be held there */
	size_t agents;
	bool stopped;
};
/* Copies all mail (inbox and archive) with its date, read state, threads and answers. What the other kind cannot hold
 * is stated in the body. Repeating it copies what is missing, nothing twice. Two agents that would become one are
 * MR_REFUSED before anything is written. MR_OK also when messages were skipped: each was told to fn (may be NULL).
 * *ret is also filled in when it ends early. */
MR_API enum mr_rc mr_export(struct mr_room *from, struct mr_room *to, const struct mr_export_options *options,
    mr_export_fn *fn, void *ctx, struct mr_exported *ret, struct mr_error *err);

/* ---- The post office: addresses ---- */

struct mr_resolution {    /* what an address means; finish with mr_resolution_done */
	const char *form; /* "agent", "operator", "wildcard", "pattern", "group", "queue", "channel", "link" */
	char name[MR_ADDRESS_MAX + 1]; /* of the agent, pattern, group, queue or channel, without its prefix */
	struct mr_names targets;       /* who gets the mail: agents, "queue:Q", "channel:C"; nobody twice */
	struct mr_names trouble;       /* members that reach nobody, a sentence each */
	struct mr_names trail;         /* how it was found, a sentence each */
};
/* Prefix, then @ pattern or group, then "/", then names of groups, queues and channels and bare agents. A
 * name of several kinds is MR_REFUSED, the hint lists the prefixed forms. */
MR_API enum mr_rc mr_resolve(
    struct mr_room *room, const char *sender, const char *address, struct mr_resolution *ret, struct mr_error *err);
MR_API void mr_resolution_done(struct mr_resolution *resolution);

/* ---- Dead letters: what could not be done or delivered, kept until somebody decides ---- */

/* Those of the room (also by mr_scan with MR_DEAD), queue "", and the failed work of queues, with headers: the newest
 * first, at most `limit` (0: all). *ret_all (or NULL): how many there are; with fn NULL that is all that is looked up.
 */
typedef bool mr_dead_fn(void *ctx, const char *queue, const struct mr_message *msg); /* false stops */
MR_API enum mr_rc mr_dead_each(
    struct mr_room *room, size_t limit, mr_dead_fn *fn, void *ctx, size_t *ret_all, struct mr_error *err);
/* One of them, with its body. ret_queue is the queue in which it failed, or "". */
MR_API enum mr_rc mr_dead_get(struct mr_room *room, const char *id, struct mr_message *ret,
    char ret_queue[MR_ADDRESS_MAX + 1], struct mr_error *err);
/* Delivers a dead letter again to `to` (NULL: its queue, or those of its own recipients who have no copy of it), under
 * a new id, then removes it from dead letters. Cut off in between, the next call only removes it. */
MR_API enum mr_rc mr_dead_retry(struct mr_room *room, const struct mr_self *self, const char *id, const char *const *to,
    struct mr_receipt *ret, struct mr_error *err);
/* For good. */
MR_API enum mr_rc mr_dead_drop(struct mr_room *room, const struct mr_self *self, const char *id, struct mr_error *err);

/* ---- Links: other rooms, and mail between them ---- */

#define MR_LINK_NAME_MAX 58 /* [a-z0-9][a-z0-9_-]*: its outgoing mail waits in queue:link-NAME */

struct mr_link_name {      /* an agent of this room, and its name over there */
	const char *local; /* an agent, or AGENT@LINK for one of a third room */
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
/* Also filled in when one of them cannot be read: MR_CORRUPT, and the error says which. */
MR_API enum mr_rc mr_link_list(struct mr_room *room, struct mr_links *ret, struct mr_error *err);
MR_API enum mr_rc mr_link_get(struct mr_room *room, const char *name, struct mr_link *ret, struct mr_error *err);
/* Makes the room `spec` known as `name`: mail to AGENT@name then goes there. With `make` a place that the first
 * message would make is made now; else what is not there is MR_NOTFOUND. */
MR_API enum mr_rc mr_link_create(struct mr_room *room, const struct mr_self *self, const char *name, const char *spec,
    bool make, struct mr_error *err);
/* Makes somebody known over there, with a mailbox that can be written to. foreign NULL: a name made of the local one.
 * MR_EXISTS: another has that name. With `adopt` a mailbox of that name may be there already, and belongs to the agent
 * from now on: its unread mail is carried. */
MR_API enum mr_rc mr_link_introduce(struct mr_room *room, const char *link, const char *local, const char *foreign,
    bool adopt, char ret_foreign[MR_ADDRESS_MAX + 1], struct mr_error *err);
/* MR_REFUSED while mail waits to go out, unless `force`, which moves it to dead letters. The other room is left as it
 * is. */
MR_API enum mr_rc mr_link_remove(
    struct mr_room *room, const char *name, bool force, size_t *ret_dead, struct mr_error *err);

/* Does the user's configuration let this room exchange mail with that one? */
MR_API bool mr_link_allowed(struct mr_room *room, const struct mr_link *link);

enum mr_carry_way { MR_CARRY_OUT = 1, MR_CARRY_IN = 2 };
struct mr_carried {
	size_t out, in;  /* messages that arrived, counted by recipients */
	size_t waiting;  /* could not go out now; they are tried again */
	size_t failed;   /* can never arrive: their senders were told */
	size_t vanished; /* went out, and their mailbox is gone with them unread: their senders were told */
};
/* Something that could not be carried, or not be read; the rest goes on. */
typedef void mr_carry_trouble_fn(void *ctx, const char *link, const struct mr_error *err);
/* Carries the mail of one link. Each message arrives once, however many carriers run and however often they are killed.
 * Any error: the other room cannot be used at all, *ret tells what was done all the same. */
MR_API enum mr_rc mr_carry(struct mr_room *room, const char *link, unsigned ways, mr_carry_trouble_fn *trouble,
    void *ctx, struct mr_carried *ret, struct mr_error *err);

/* ---- Is there mail? ---- */

/* How much unread mail is there for the agent itself? Control messages, which wait for a patrol, do not count, nor do
 * files that cannot be read: each is told to `trouble` (may be NULL). */
MR_API enum mr_rc mr_check(struct mr_room *room, const char *agent, mr_trouble_fn *trouble, void *ctx,
    size_t *ret_unread, struct mr_error *err);

/* ---- Small helpers that every door needs ---- */

/* Checks an agent's address; err says what is allowed. */
MR_API enum mr_rc mr_address_check(const char *address, struct mr_error *err);
/* "90s", "30m", "2h", "7d", "1w", or plain seconds. */
MR_API enum mr_rc mr_duration_parse(const char *text, int64_t *ret_ms, struct mr_error *err);
/* RFC 3339, "YYYY-MM-DD", or a duration (so long ago). */
MR_API enum mr_rc mr_time_parse(const char *text, int64_t *ret_ms, struct mr_error *err);
MR_API void mr_names_done(struct mr_names *names);

#ifdef __cplusplus
}
#endif
#endif
