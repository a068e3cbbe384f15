package desire

import (
	"fmt"
	"strings"

	"cupola/runtime/guid"
	"cupola/store/cf"
)

// ProcessGUID names the Desired of an app's process: Diego's process_guid, the
// process' GUID and a version. A stop of the app, or a restart of the process
// alone, changes it, so that the next start makes new instances.
func ProcessGUID(p *cf.Process, app *cf.App) string {
	return p.GUID + "-" + version(p, app)[:8]
}

// CFProcess is the GUID of the process that ProcessGUID made its name of.
func CFProcess(processGUID string) string {
	if i := strings.LastIndexByte(processGUID, '-'); i >= 0 {
		return processGUID[:i]
	}
	return processGUID
}

// version is the process' version in Cloud Controller's sense: a UUID.
func version(p *cf.Process, app *cf.App) string {
	return guid.Named(guid.OID, fmt.Sprintf("%s/%d", p.GUID, app.Rev+p.Rev))
}
