// Package databackup backs up and restores service instances of the built-in broker.
//
// A backup is a row of store.DataBackups and a blob with the content, sealed with a key
// that only the row has. Jobs say what to do. The loop does each from its beginning to
// its end; if the daemon is killed meanwhile, the next one begins again: a backup becomes
// visible with its last transaction, and a restore can be repeated.
package databackup
