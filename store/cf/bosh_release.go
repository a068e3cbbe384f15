package cf

// BOSHRelease is a version of a BOSH release that was uploaded.
type BOSHRelease struct {
	Resource
	Name, Version string
	CommitHash    string
	Uncommitted   bool // it was made of changes that were not committed
	Jobs          []BOSHReleaseJob
	Packages      []BOSHReleasePackage // each after those that it depends on
}

// BOSHReleaseJob is a job of a release. Its archive is a blob.
type BOSHReleaseJob struct {
	Name, Fingerprint string
	Digest            string // of the blob
	Packages          []string
}

// BOSHReleasePackage is a package of a release.
type BOSHReleasePackage struct {
	Name, Fingerprint string
	Dependencies      []string              // names of packages that must be compiled before it
	Digest            string                // of the blob with its source; "" if the release has none
	Compiled          []BOSHReleaseCompiled // those that the release came with
}

// BOSHReleaseCompiled is a compiled package that came with a release.
type BOSHReleaseCompiled struct {
	OS     string // of the stemcell, like ubuntu-jammy
	Digest string // of the blob
}

// BOSHCompiledPackage is a package that was compiled here. Its GUID names the
// source, the stack and the compiled packages that it depends on.
type BOSHCompiledPackage struct {
	Resource
	Name, Fingerprint string // of the package
	Stack             string
	Digest            string // of the blob
	Size              int64  // of the blob, in bytes
}

// Job is the job of a name, or nil.
func (r *BOSHRelease) Job(name string) *BOSHReleaseJob {
	for i := range r.Jobs {
		if r.Jobs[i].Name == name {
			return &r.Jobs[i]
		}
	}
	return nil
}

// Package is the package of a name, or nil.
func (r *BOSHRelease) Package(name string) *BOSHReleasePackage {
	for i := range r.Packages {
		if r.Packages[i].Name == name {
			return &r.Packages[i]
		}
	}
	return nil
}

// CompiledFor is the digest of the package as it came compiled for the stemcells
// of an OS, or "".
func (p *BOSHReleasePackage) CompiledFor(os string) string {
	for _, c := range p.Compiled {
		if c.OS == os {
			return c.Digest
		}
	}
	return ""
}
