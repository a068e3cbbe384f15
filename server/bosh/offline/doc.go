// Package offline renders deployments without a daemon and without root: it reads the
// jobs of releases from tarballs, directories and images, and renders their templates
// with this machine's Ruby. Templates run as the user: they are trusted as those of
// the bosh CLI's create-env are.
package offline
