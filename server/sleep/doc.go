// Package sleep lets apps sleep that get no requests, and wakes them. An app that sleeps is
// frozen at first: its processes are stopped where they are. After a further time it has no
// instances. The router holds what comes for it until it is awake.
//
// What an app wants is in its labels; that it sleeps is in rows, so that a restarted daemon
// goes on. step decides, and is pure; Loop acts.
package sleep
