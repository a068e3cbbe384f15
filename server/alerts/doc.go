// Package alerts notifies the owner of a machine of problems.
//
// Rules say what is looked for. Sources ask the parts of the daemon that know it:
// nothing is measured for alerts alone. step (pure) moves each alert from PENDING to
// FIRING to RESOLVED, and the Loop writes what step decided. An event for the targets
// is a row that is written in the same transaction as the change of its alert, and
// deleted after the target has taken it. So each event is sent at least once: a daemon
// that is killed after a target took a message sends it again, with the same IDs.
package alerts
