-- SPDX-License-Identifier: MIT
-- step5.sql - migration 5: two columns that nothing looked for, and with them two indexes that every send wrote to.

ALTER TABLE message DROP COLUMN IF EXISTS thread, DROP COLUMN IF EXISTS reply_to; -- the header block has both
