package desire

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"cupola/runtime/contract"
	"cupola/runtime/lrp"
)

// defaultLang is what Cloud Controller sets for every buildpack app.
const defaultLang = "en_US.UTF-8"

// maxFiles is the limit of open files that Cloud Controller gives an app.
const maxFiles = 16384

// vars collects an environment; of two variables of the same name the later
// one counts.
type vars []lrp.EnvVar

func (v *vars) set(name, value string) { *v = append(*v, lrp.EnvVar{Name: name, Value: value}) }

// merge adds a map in the order of its names, so that the same rows always
// make the same environment.
func (v *vars) merge(m map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		v.set(name, m[name])
	}
}

// system adds what Cloud Controller knows about the app.
func (v *vars) system(o Owner, app vcapApplication) {
	v.limits(app)
	v.services(o)
}

// limits adds what says how much memory there is.
func (v *vars) limits(app vcapApplication) {
	v.set(contract.EnvApplication, app.text())
	v.set("MEMORY_LIMIT", fmt.Sprintf("%dm", app.Limits.MemoryMB))
}

// vcapApplication is VCAP_APPLICATION with the keys that Cloud Controller
// gives it. The launcher adds those of the instance.
type vcapApplication struct {
	CFAPI              string   `json:"cf_api"`
	Limits             limits   `json:"limits"`
	ApplicationName    string   `json:"application_name"`
	ApplicationURIs    []string `json:"application_uris"`
	Name               string   `json:"name"`
	SpaceName          string   `json:"space_name"`
	SpaceID            string   `json:"space_id"`
	OrganizationID     string   `json:"organization_id"`
	OrganizationName   string   `json:"organization_name"`
	URIs               []string `json:"uris"`
	Users              any      `json:"users"` // always null
	ProcessID          string   `json:"process_id,omitempty"`
	ProcessType        string   `json:"process_type,omitempty"`
	ApplicationID      string   `json:"application_id"`
	Version            string   `json:"version,omitempty"`
	ApplicationVersion string   `json:"application_version,omitempty"`
}

type limits struct {
	Files    int `json:"fds"`
	MemoryMB int `json:"mem"`
	DiskMB   int `json:"disk"`
}

func (o Owner) vcapApplication(memoryMB, diskMB int) vcapApplication {
	uris := o.URIs
	if uris == nil {
		uris = []string{}
	}
	return vcapApplication{
		CFAPI: o.API, Limits: limits{Files: maxFiles, MemoryMB: memoryMB, DiskMB: diskMB},
		ApplicationName: o.App.Name, Name: o.App.Name, ApplicationID: o.App.GUID,
		ApplicationURIs: uris, URIs: uris,
		SpaceName: o.Space.Name, SpaceID: o.Space.GUID,
		OrganizationName: o.Org.Name, OrganizationID: o.Org.GUID,
	}
}

func (a vcapApplication) text() string {
	b, err := json.Marshal(a)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	return string(b)
}

// VCAPApplication is VCAP_APPLICATION as `cf env` shows it, without what only
// a process or an instance has.
func VCAPApplication(o Owner, memoryMB, diskMB int) any { return o.vcapApplication(memoryMB, diskMB) }
