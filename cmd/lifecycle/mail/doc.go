// Package mail is a mail server that delivers nothing: it keeps what apps send in a
// directory, for people to look at. It is what the service smtp of the built-in broker
// runs in its containers.
//
// A message is acknowledged once it is on the disk. The oldest messages are deleted where
// there are too many.
package mail
