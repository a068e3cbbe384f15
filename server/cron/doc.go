// Package cron reads cron expressions and says when they are due. It is pure.
//
// An expression has five fields: minute, hour, day of the month, month, day of the week. A
// field is a list of values, ranges and steps, as in "1,5,10-20/2,*/15"; months and days of
// the week also have names. "?" is "*". @hourly, @daily (@midnight), @weekly, @monthly and
// @yearly (@annually) stand for five fields. "CRON_TZ=Europe/Berlin " before it, or "TZ=…",
// names the time zone of its fields; without one it is UTC. As in every cron, a day matches if
// either of its two fields does where both are restricted.
//
// When clocks change, an expression whose hour is "*" goes on by elapsed time. One of fixed
// hours is due once a day: a time that clocks skip is due at the moment of the change, one that
// they show twice is due the first time.
package cron
