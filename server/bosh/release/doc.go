// Package release reads the manifests of BOSH releases, and their jobs from release images, which
// keep each in /var/vcap/jobs-src/<job>: its spec (job.MF or spec) and its
// templates. An image is untrusted: nothing outside of it is read, nothing
// special in it is opened, and what is read is bounded.
package release
