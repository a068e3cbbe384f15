// Package debian builds a root filesystem from the packages of a
// Debian or Ubuntu archive: no dpkg, no chroot, no maintainer script, no root
// needed (without it, files belong to the caller).
//
// Nothing is used unverified. A suite's InRelease must be signed by a key whose
// fingerprint is pinned in this package; it vouches for the Packages indexes, those for
// every .deb. What the packages' scripts would have done and a container needs
// (accounts, certificates, alternatives, locale) is done here, and dpkg's
// database is written, so that dpkg -l, apt and scanners see an ordinary system.
//
// The first build of a suite picks the newest packages and returns a [Lock]; a
// build from the same lock gives the same tree, whenever and wherever it runs.
//
// No mirror is built in: it comes from the host's apt sources or from [Options].
package debian
