package desire

import (
	"cupola/runtime/contract"
	"cupola/runtime/lrp"
	"cupola/server/bindings"
	"cupola/store/cf"
)

// Platform is what holds for every app.
type Platform struct {
	API     string            // URL, for cf_api in VCAP_APPLICATION
	Running map[string]string // the environment variable group of that name
	Staging map[string]string // the environment variable group of that name
	Groups  []*cf.SecurityGroup
}

// Owner is an app, and where it lives.
type Owner struct {
	Platform
	App   *cf.App
	Space *cf.Space
	Org   *cf.Org
	URIs  []string // "host.domain/path" of the routes that lead to the app, or to the process

	Bindings []bindings.Binding // those that count
}

// App is what a process of an app desires, with the routes that lead to it.
type App struct {
	lrp.Desired
	Routes  []AppRoute
	Segment string // the isolation segment; "" for the shared one
}

// tags are the tags that Cloud Controller gives Diego for logs and metrics.
func (o Owner) tags() map[string]string {
	return map[string]string{
		"source_id":         o.App.GUID,
		"app_id":            o.App.GUID,
		"app_name":          o.App.Name,
		"space_id":          o.Space.GUID,
		"space_name":        o.Space.Name,
		"organization_id":   o.Org.GUID,
		"organization_name": o.Org.Name,
	}
}

// units are the organizational units that Cloud Controller asks for in an
// instance's identity certificate.
func (o Owner) units() []string {
	return []string{"organization:" + o.Org.GUID, "space:" + o.Space.GUID, "app:" + o.App.GUID}
}

// systemCertificates is where Cloud Controller has containers look for
// certificates to trust.
const systemCertificates = contract.SystemCertificates
