package manifest

// Release is where a job's image comes from.
type Release struct {
	At
	Name        string
	Version     string
	URL         string // of the registry and organization
	SHA1        string
	Stemcell    *Stemcell // overrides that of the instance group
	Credentials Credentials
	Exported    []any // exported_from
}

// Credentials are those of a release's registry; zero is anonymous.
type Credentials struct{ Username, Password string }

// Stemcell is an operating system that images of releases are built on.
type Stemcell struct {
	At
	Alias   string
	OS      string
	Name    string // of a stemcell's file; not used
	Version string
}

func releaseOf(o *object) Release {
	r := Release{At: o.At, Name: o.text("name"), Version: o.text("version"), URL: o.text("url"), SHA1: o.text("sha1"), Exported: o.anys("exported_from")}
	if s := o.in("stemcell"); s != nil {
		own := Stemcell{At: s.At, OS: s.text("os"), Version: s.text("version")}
		r.Stemcell = &own
		s.done()
	}
	if c := o.in("credentials"); c != nil {
		r.Credentials = Credentials{c.text("username"), c.text("password")}
		c.done()
	}
	return r
}

func stemcell(o *object) Stemcell {
	return Stemcell{At: o.At, Alias: o.text("alias"), OS: o.text("os"), Name: o.text("name"), Version: o.text("version")}
}
