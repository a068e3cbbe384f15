package manifest

import (
	"slices"
	"sync"
)

// use says what becomes of a key.
type use string

// The uses.
const (
	used     use = "used"
	accepted use = "accepted" // it has no effect, and nothing is wrong with that
	warned   use = "warned"   // it has no effect, and lint warns
	refused  use = "refused"  // it is an error
)

// key is a key of manifests and what becomes of it.
type key struct {
	Path string // a list is x[], a map by names that users choose x.*
	Use  use
	Text string // what it does, or lint's message; "" of one that is warned of: it is not used
	// When is the only value that the use is of; any other is used. "" is any
	// that is not empty.
	When string
}

func keyOf(path string) (key, bool) {
	k, ok := keysByPath()[path]
	return k, ok
}

var keysByPath = sync.OnceValue(func() map[string]key {
	all := map[string]key{}
	for _, k := range keys() {
		all[k.Path] = k
	}
	return all
})

// keys returns all keys of a manifest. Jobs have the same keys wherever they stand.
func keys() []key {
	return slices.Concat(deploymentKeys, groupKeys, settingsKeys, jobKeys("instance_groups[].jobs[]."), quarksKeys("instance_groups[].jobs[].properties.quarks."),
		addonKeys, jobKeys("addons[].jobs[]."), quarksKeys("addons[].jobs[].properties.quarks."), tailKeys, cloudKeys)
}

var deploymentKeys = []key{
	{Path: "name", Use: used, Text: "the deployment's name; begins the names of all its objects"},
	{Path: "manifest_version", Use: accepted},
	{Path: "director_uuid", Use: warned},
	{Path: "features", Use: used},
	{Path: "features.converge_variables", Use: warned, Text: "use update_mode on the variable"},
	{Path: "features.randomize_az_placement", Use: used, Text: "the order in which a group takes its AZs depends on a hash of the names of deployment, group and AZ; each deploy takes the same"},
	{Path: "features.use_dns_addresses", Use: refused, When: "false", Text: "addresses in links are always names; remove it"},
	{Path: "features.use_tmpfs_config", Use: used, Text: "rendered templates lie in memory"},
	{Path: "features.use_tmpfs_job_config", Use: used, Text: "the same"},
	{Path: "features.use_short_dns_addresses", Use: warned, Text: "not used: names are those of Services"},
	{Path: "features.use_link_dns_names", Use: warned, Text: "not used: names are those of Services"},

	{Path: "releases", Use: used},
	{Path: "releases[].name", Use: used, Text: "that of an uploaded release; or image = url/name:os-version-version"},
	{Path: "releases[].version", Use: used, Text: "latest of uploaded releases only; no create"},
	{Path: "releases[].url", Use: used, Text: "a tarball's, by http or https; or the registry and organization of release images; without it, the release must be uploaded"},
	{Path: "releases[].sha1", Use: used, Text: "of the tarball at url; images have digests"},
	{Path: "releases[].stemcell", Use: used, Text: "overrides that of the instance group"},
	{Path: "releases[].stemcell.os", Use: used},
	{Path: "releases[].stemcell.version", Use: used},
	{Path: "releases[].credentials", Use: used, Text: "those of the registry"},
	{Path: "releases[].credentials.username", Use: used},
	{Path: "releases[].credentials.password", Use: used},
	{Path: "releases[].exported_from", Use: accepted},

	{Path: "stemcells", Use: used, Text: "by alias, for groups' releases without a stemcell"},
	{Path: "stemcells[].alias", Use: used},
	{Path: "stemcells[].os", Use: used},
	{Path: "stemcells[].name", Use: warned, Text: "not used: give os"},
	{Path: "stemcells[].version", Use: used},

	{Path: "update", Use: used, Text: "for all groups that do not say otherwise"},
	{Path: "update.canaries", Use: used, Text: "instances, or a percentage, that are updated first"},
	{Path: "update.canary_watch_time", Use: used, Text: "ms, low-high: how long to look at them, how long to wait; a single number is both"},
	{Path: "update.max_in_flight", Use: used, Text: "instances, or a percentage, that are updated at once"},
	{Path: "update.update_watch_time", Use: used, Text: "as canary_watch_time, for the others"},
	{Path: "update.serial", Use: used, Text: "groups wait for those before them; false when not given, other than in BOSH"},
	{Path: "update.vm_strategy", Use: warned},
	{Path: "update.initial_deploy_az_update_strategy", Use: used, Text: "serial or parallel"},
}
