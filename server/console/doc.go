// Package console serves the web console: the files of package web, and the
// sessions of the browsers that show them.
//
// A browser holds a cookie and no token: /console/api/PATH answers PATH of the
// API, the UAA and the log cache as the session's user, by the same handlers and
// with the same rights as `cf`. It has two more streams: /console/events tells what changes, and /console/terminal is `cf ssh` in the
// browser. Both end within a second when the session or the right to them does.
package console
