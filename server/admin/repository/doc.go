// Package repository keeps backups in storage away from the machine: many of them in
// little more room than one takes, encrypted for the holders of its key only.
//
// A backup is a stream of bytes. It is cut into chunks where its content says so, so
// that what did not change between two backups is cut alike, wherever it moved. A chunk
// is named by a keyed digest of its content, and is stored once; it is compressed and
// encrypted to age's public keys, so that the machine which makes backups cannot read
// them. A snapshot lists the chunks of one backup. It is written last: what a backup that
// was cut off has stored is found by the next one, and is garbage after a day.
//
//	repository.json                    whose it is
//	snapshots/20261127T030000Z.json    a backup: its size, digest and chunks
//	chunks/3f/ID.DIGEST                a chunk; DIGEST is the SHA-256 of the object itself
//	journal/20261127T030000Z/…         the same for the parts that follow a backup
package repository
