-- SPDX-License-Identifier: MIT
-- step2.sql - migration 2: logins that act for some agents only (init --roles).

CREATE TABLE IF NOT EXISTS actor (                            -- a login acts for an agent, for NAME/* or for * (the owners of the room)
	login     name NOT NULL, agent text COLLATE "C" NOT NULL,
	PRIMARY KEY (login, agent)
);
ALTER TABLE room ADD IF NOT EXISTS users name;                -- the role that may call the functions; NULL: the room is not guarded
ALTER TABLE message ADD IF NOT EXISTS proven boolean NOT NULL DEFAULT false; -- the login was checked for the sender
ALTER TABLE record ADD IF NOT EXISTS login name NOT NULL DEFAULT session_user;
