package cf

// BOSHConfig is a version of a config that an operator gives to all deployments.
type BOSHConfig struct {
	Resource
	Number  int // from 1, of all configs: the config's ID in BOSH
	Type    string
	Name    string
	Content []byte // YAML
	Deleted bool
}
