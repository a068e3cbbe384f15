package cf

// Revision is what an app was when it was started: droplet, environment,
// commands and sidecars.
type Revision struct {
	Resource
	Metadata
	AppGUID     string
	Version     int // 1, 2, … in the app
	DropletGUID string
	Description string
	Env         map[string]string // sealed at rest
	Commands    map[string]string // process type → command; "" for the droplet's
	Sidecars    []Sidecar
}
