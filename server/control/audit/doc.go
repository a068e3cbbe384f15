// Package audit writes audit events. Whatever changes what users asked for, or
// shows a secret of it, writes its event here, in the same transaction: the
// API, background jobs, service brokers, ssh and the scheduler alike. The types
// of events are one list.
package audit
