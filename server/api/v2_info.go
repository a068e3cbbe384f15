package api

import (
	"strings"

	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// v2Info is GET /v2/info, by which older clients find the other parts.
func v2Info(c *call) (*response, error) {
	info := doc{
		"name": "cupola", "build": "", "support": "", "version": 0, "description": "Cloud Foundry on one machine",
		"authorization_endpoint": c.base(), "token_endpoint": c.base(), "min_cli_version": nil, "min_recommended_cli_version": nil,
		"app_ssh_endpoint": nil, "app_ssh_host_key_fingerprint": nil, "app_ssh_oauth_client": nil,
		"doppler_logging_endpoint": strings.Replace(c.systemURL("doppler"), "http", "ws", 1),
		"api_version":              v2Version, "osbapi_version": osbapiVersion,
	}
	if ssh := c.s.SSH; ssh.Address != "" {
		with(info, doc{"app_ssh_endpoint": sshAddress(c), "app_ssh_host_key_fingerprint": ssh.HostKeyFingerprint, "app_ssh_oauth_client": ssh.ClientID})
	}
	if len(c.s.TCPPorts) > 0 {
		info["routing_endpoint"] = c.url("/routing")
	}
	return ok(info)
}

var v2Stacks = v2Kind[cf.Stack]{table: store.Stacks, filters: map[string]string{"name": "names"},
	views: v2Each(func(_ *call, s *cf.Stack) (doc, error) { return viewV2Stack(s), nil })}

func viewV2Stack(s *cf.Stack) doc {
	return v2Resource(s.Resource, "/v2/stacks", doc{"name": s.Name, "description": s.Description, "build_rootfs_image": s.Name, "run_rootfs_image": s.Name})
}

func viewV2Flag(f *cf.FeatureFlag) doc {
	return doc{"name": f.Name, "enabled": f.Enabled, "error_message": control.OrNil(f.CustomErrorMessage), "url": "/v2/config/feature_flags/" + f.Name}
}

// v2ListFlags answers with a bare list, as Cloud Controller does.
func v2ListFlags(c *call) (*response, error) {
	docs := []doc{}
	for _, f := range control.FeatureFlags {
		now, err := c.Flag(f.Name)
		if err != nil {
			return nil, err
		}
		docs = append(docs, viewV2Flag(now))
	}
	return ok(docs)
}

func v2ShowFlag(c *call) (*response, error) {
	f, err := c.Flag(c.param("name"))
	if err != nil {
		return nil, err
	}
	return ok(viewV2Flag(f))
}
