-- SPDX-License-Identifier: MIT
-- step3.sql - migration 3: bodies with attachments.

CREATE TABLE IF NOT EXISTS chunk (              -- a body that is too large for one value, in pieces; committed with its message
	id        text COLLATE "C" NOT NULL, at bigint NOT NULL, bytes bytea NOT NULL, -- at: the offset of the first byte
	PRIMARY KEY (id, at)
);
ALTER TABLE chunk ALTER bytes SET STORAGE EXTERNAL; -- base64 of what is mostly compressed already
ALTER TABLE message ADD IF NOT EXISTS content bigint NOT NULL DEFAULT 0; -- bytes in chunk; 0: the body is in the row
