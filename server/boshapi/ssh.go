package boshapi

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"

	"golang.org/x/crypto/ssh"

	"cupola/runtime/pattern"
	"cupola/server/bosh/director"
	"cupola/server/bosh/sshsession"
	"cupola/store/cf"
)

// SSH is the daemon's SSH server, the gateway by which the CLI's ssh enters instances.
type SSH struct {
	Address  string // "": there is none
	HostKey  ssh.PublicKey
	Sessions *sshsession.Sessions
}

// sshRequest is what the CLI asks for before and after its ssh.
type sshRequest struct {
	Command string
	Target  struct {
		Job          string
		IDs, Indexes []string
	}
	Params struct {
		User      string
		PublicKey string `json:"public_key"`
		UserRegex string `json:"user_regex"`
	}
}

// ids are the instances of the group that are meant; none is all of them.
func (r *sshRequest) ids() []string {
	switch {
	case len(r.Target.IDs) > 0:
		return r.Target.IDs
	case len(r.Target.Indexes) > 0:
		return r.Target.Indexes
	}
	return []string{""}
}

// changeSSH sets up a session of SSH, or ends it.
func changeSSH(c *call) (*answer, error) {
	var req sshRequest
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	d, err := c.deployment()
	if err != nil {
		return nil, err
	}
	instances, err := c.entered(d, &req)
	if err != nil {
		return nil, err
	}
	switch req.Command {
	case "setup":
		return c.setUpSSH(d, &req, instances)
	case "cleanup":
		return c.cleanUpSSH(d, &req, instances)
	}
	return nil, refuse("invalid command %q: give setup or cleanup", req.Command)
}

// entered are the instances that a request is for, each once.
func (c *call) entered(d *cf.BOSHDeployment, req *sshRequest) (chosen []director.Observed, err error) {
	all, err := director.Observe(c.tx, d)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, id := range req.ids() {
		group, index, err := c.named(d, req.Target.Job, id)
		if err != nil {
			return nil, err
		}
		for _, o := range all {
			if (group == "" || group == o.Group) && (index == nil || *index == o.Index) && !seen[o.GUID] {
				seen[o.GUID], chosen = true, append(chosen, o)
			}
		}
	}
	return chosen, nil
}

// sshUsers are the names that the CLI makes; the gateway's are others.
var sshUsers = pattern.Lazy(`^[a-z_][a-z0-9_-]{0,31}$`)

// setUpSSH has the CLI's key accepted for instances that run.
func (c *call) setUpSSH(d *cf.BOSHDeployment, req *sshRequest, instances []director.Observed) (*answer, error) {
	if c.SSH.Address == "" {
		return nil, refuse("this daemon has no SSH server: start it with --ssh ADDR")
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(req.Params.PublicKey))
	if err != nil || !sshUsers().MatchString(req.Params.User) {
		return nil, refuse("params.user must be the name of a user, and params.public_key a line of authorized_keys")
	}
	session := sshsession.Session{User: req.Params.User, Key: key, Who: c.identity, Deployment: d.Name, Instances: map[string]string{}}
	for _, o := range instances {
		if o.Address != "" {
			session.Instances[o.Address] = o.GUID
		}
	}
	if len(session.Instances) == 0 {
		return nil, &refusal{http.StatusNotFound, 70001, fmt.Sprintf("No instance with a VM in deployment '%s' matches: give one that runs", d.Name)}
	}
	gateway, err := c.SSH.Sessions.Open(session)
	if err != nil {
		return nil, &refusal{http.StatusServiceUnavailable, 0, err.Error()}
	}
	hosts := []doc{}
	for _, o := range instances {
		if o.Address != "" {
			hosts = append(hosts, doc{"command": "setup", "status": "success", "id": o.GUID, "index": o.Index, "job": o.Group, "ip": o.Address,
				"host_public_key": strings.TrimSpace(string(ssh.MarshalAuthorizedKey(c.SSH.HostKey))), "gateway_host": c.gatewayHost(), "gateway_user": gateway})
		}
	}
	return c.recordSSH(d, req, instances, hosts)
}

// gatewayHost is the SSH server as a URL, since the CLI knows no port besides the host. It is
// reached at the host that the client used for this API.
func (c *call) gatewayHost() string {
	_, port, _ := net.SplitHostPort(c.SSH.Address)
	host := c.Request.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return "ssh://" + net.JoinHostPort(strings.Trim(host, "[]"), port)
}

// cleanUpSSH revokes keys.
func (c *call) cleanUpSSH(d *cf.BOSHDeployment, req *sshRequest, instances []director.Observed) (*answer, error) {
	users, err := regexp.Compile(req.Params.UserRegex)
	if err != nil || req.Params.UserRegex == "" {
		return nil, refuse("params.user_regex must be a regular expression")
	}
	guids, hosts := []string{}, []doc{}
	for _, o := range instances {
		guids = append(guids, o.GUID)
		hosts = append(hosts, doc{"command": "cleanup", "status": "success", "id": o.GUID, "index": o.Index, "job": o.Group})
	}
	if c.SSH.Sessions != nil {
		c.SSH.Sessions.Close(d.Name, users.MatchString, guids)
	}
	return c.recordSSH(d, req, instances, hosts)
}

// recordSSH records the task, and an event for each instance with a result.
func (c *call) recordSSH(d *cf.BOSHDeployment, req *sshRequest, instances []director.Observed, hosts []doc) (*answer, error) {
	output, err := json.Marshal(hosts)
	if err != nil {
		return nil, err
	}
	t, err := director.Record(c.tx, director.Ended{Deployment: d.Name, User: c.user(), Kind: director.SSH, Output: string(output) + "\n"})
	if err != nil {
		return nil, err
	}
	for _, o := range instances {
		if o.Address == "" && req.Command == "setup" {
			continue
		}
		if err := director.RecordSSH(c.tx, t, req.Command, o.BOSHInstance); err != nil {
			return nil, err
		}
	}
	return toTask(t), nil
}
