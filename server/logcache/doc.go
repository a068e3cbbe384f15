// Package logcache keeps the newest log lines of every app in memory, and what
// was measured of it, and serves them by the log-cache API, which `cf logs`
// polls. What it keeps is bounded by count for each source
// and by bytes overall; most of it is packed in chunks, and unpacked as it is read. Log lines are in files as well, so that a killed daemon
// loses none; older ones go to package archive, and a history of what was measured is in package history.
package logcache
