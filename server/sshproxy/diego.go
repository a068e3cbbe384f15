package sshproxy

import (
	"context"
	"crypto/md5"  //nolint:gosec // clients name keys by it
	"crypto/sha1" //nolint:gosec // likewise
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
	"cupola/server/bbs/bbsrows"
	"cupola/server/bbs/model"
	"cupola/server/desire"
	"cupola/store"
)

// diegoUser begins the user names of Diego's own clients.
const diegoUser = "diego:"

// The reasons why such a client is not let in are Diego's (diego-ssh:
// authenticators/errors.go).
var (
	errDiegoUser   = errors.New("Invalid authentication domain")
	errDiegoSecret = errors.New("Invalid credentials")
	errDiegoRoute  = errors.New("SSH routing info not found")
	errDiegoKey    = errors.New("Host fingerprint mismatch")
)

// admitDiego decides whether a client of Diego may enter an instance of an LRP
// (diego-ssh: authenticators/diego_proxy_authenticator.go). The password is for all of
// them: those of the BBS's clients, by the sshd that the instance has, and those of apps.
func (p *Proxy) admitDiego(ctx context.Context, user, password string) (target, error) {
	at, err := parseUser(diegoUser, user)
	if err != nil {
		return target{}, errDiegoUser
	}
	secret := ""
	if p.Diego != nil {
		secret = p.Diego()
	}
	if secret == "" || subtle.ConstantTimeCompare([]byte(secret), []byte(password)) != 1 {
		return target{}, errDiegoSecret
	}
	var to target
	var refusal error
	err = p.Store.Read(ctx, func(tx *store.Tx) (err error) {
		to, refusal, err = diegoTarget(tx, at)
		return err
	})
	if err != nil {
		p.Log.ErrorContext(ctx, "ssh login not checked", "process_guid", at.processGUID, "err", err)
		return target{}, errUnentered
	}
	return to, refusal
}

// diegoTarget finds the sshd of an instance, or says why there is none.
func diegoTarget(tx *store.Tx, at login) (to target, refusal, err error) {
	actual, err := store.ActualLRPs.First(tx, store.Query{Where: map[string][]string{"process_guids": {at.processGUID}, "indices": {strconv.Itoa(at.index)}}})
	if store.IsNotFound(err) {
		return to, fmt.Errorf("no matching ActualLRP for ProcessGuid: %s, Index: %d", at.processGUID, at.index), nil
	}
	if err != nil {
		return to, nil, err
	}
	if actual.Domain == lrp.DomainApps {
		return diegoApp(tx, at, actual)
	}
	row, err := store.BBSDesireds.Get(tx, at.processGUID)
	if store.IsNotFound(err) {
		return to, errDiegoRoute, nil
	}
	if err != nil {
		return to, nil, err
	}
	desired, err := bbsrows.Decode(row)
	if err != nil {
		return to, nil, err
	}
	route, ok := model.SSH(desired.Message)
	switch {
	case !ok || !slices.Contains(actual.Ports, route.ContainerPort):
		return to, errDiegoRoute, nil
	case actual.State != lrp.Running || actual.Address == "":
		return to, errNotRunning, nil
	}
	config, err := diegoConfig(route)
	if err != nil {
		return to, err, nil
	}
	return target{user: diegoUser, instanceGUID: actual.InstanceGUID, log: diegoLog(actual, desired.Message), config: config,
		address: net.JoinHostPort(actual.Address, strconv.Itoa(int(route.ContainerPort)))}, nil, nil
}

// diegoApp is diegoTarget for an instance of an app. Cloud Controller writes the route
// diego-ssh if ssh is enabled for the app; the space does not matter (CC:
// diego/app_recipe_builder.rb).
func diegoApp(tx *store.Tx, at login, actual *lrp.Actual) (to target, refusal, err error) {
	e, err := find(tx, login{processGUID: desire.CFProcess(at.processGUID), index: at.index})
	if store.IsNotFound(err) {
		return to, errDiegoRoute, nil
	}
	switch {
	case err != nil:
		return to, nil, err
	case !e.app.SSHEnabled:
		return to, errDiegoRoute, nil
	case actual.State != lrp.Running || actual.InstanceGUID == "":
		return to, errNotRunning, nil
	}
	to = e.target(actual)
	to.user = diegoUser
	return to, nil, nil
}

// diegoLog is where the log says who entered.
func diegoLog(a *lrp.Actual, d *bbspb.DesiredLRP) lrp.LogTarget {
	log := model.Desired(d).Log
	log.Source, log.Instance = "SSH", strconv.Itoa(a.Index)
	return log
}

// diegoConfig says what the route says of the sshd: as whom it is entered, with
// what proof, and which key it has.
func diegoConfig(route model.SSHRoute) (*ssh.ClientConfig, error) {
	c := &ssh.ClientConfig{User: route.User, HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
		if route.HostFingerprint != "" && !slices.Contains(fingerprints(key), strings.TrimRight(route.HostFingerprint, "=")) {
			return errDiegoKey
		}
		return nil
	}}
	if route.PrivateKey != "" {
		key, err := ssh.ParsePrivateKey([]byte(route.PrivateKey))
		if err != nil {
			return nil, fmt.Errorf("the private_key of the route diego-ssh cannot be read: %w", err)
		}
		c.Auth = append(c.Auth, ssh.PublicKeys(key))
	}
	if route.User != "" && route.Password != "" {
		c.Auth = append(c.Auth, ssh.Password(route.Password))
	}
	return c, nil
}

// fingerprints are those that name a key, as MD5, SHA-1 and SHA-256.
func fingerprints(key ssh.PublicKey) []string {
	one, two := md5.Sum(key.Marshal()), sha1.Sum(key.Marshal()) //nolint:gosec // as above
	colons := func(sum []byte) string { return strings.ReplaceAll(fmt.Sprintf("% x", sum), " ", ":") }
	return []string{colons(one[:]), colons(two[:]), strings.TrimPrefix(ssh.FingerprintSHA256(key), "SHA256:")}
}
