// Package gitpush lets git push deploy apps: it serves git's smart HTTP protocol at
// /git/ORG/SPACE/APP.git of the API's address, and the commands of SSH sessions of
// users who log in by key. A push to the branch main or master
// makes the API's calls that cf push makes, with the pusher's token, and writes the
// staging log to the client. What was pushed is kept in a bare repository of the app,
// so that the next push sends only what changed.
//
// Packs are not trusted: their objects are measured before go-git reads them, and the
// files of a commit go from its trees into the package's zip; nothing is checked out
// on this machine's disk.
package gitpush
