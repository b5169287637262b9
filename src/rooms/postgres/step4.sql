-- SPDX-License-Identifier: MIT
-- step4.sql - migration 4: by which door a life was seen, enum mr_door.

ALTER TABLE life ADD IF NOT EXISTS door int NOT NULL DEFAULT 0;
