package stacks

import (
	"encoding/json"
	"errors"

	"cupola/rootfs/reference"
	"cupola/store/cf"
)

// credentialFlags are the credentials that apps get for the registry of an image.
type credentialFlags struct {
	RegistryUser     string `help:"User of the registry of an image in --to; it is stored in the apps." name:"registry-username" env:"CUPOLA_REGISTRY_USERNAME" placeholder:"USER"`
	RegistryPassword string `help:"Password of that user; prefer the environment variable." name:"registry-password" env:"CUPOLA_REGISTRY_PASSWORD,CF_DOCKER_PASSWORD" placeholder:"PASSWORD"`
	CredentialsJSON  string `help:"Users and passwords by registry, as JSON; prefer the environment variable. They replace the credentials that the apps have." name:"credentials" env:"CUPOLA_REGISTRY_CREDENTIALS" placeholder:"JSON"`
}

// forImage returns the credentials for an image's apps; nil for none, which leaves those that an app has.
func (f credentialFlags) forImage(image string) (cf.Credentials, error) {
	if f.RegistryUser != "" && f.RegistryPassword == "" {
		return nil, errors.New("--registry-username requires a password: set CUPOLA_REGISTRY_PASSWORD")
	}
	ref, err := reference.Parse(image)
	if err != nil {
		return nil, err
	}
	all, err := parseCredentials(f.CredentialsJSON)
	if err != nil || f.RegistryUser == "" {
		return all, err
	}
	if all == nil {
		all = cf.Credentials{}
	}
	all[ref.Host] = cf.Credential{Username: f.RegistryUser, Password: f.RegistryPassword}
	return all, nil
}

// parseCredentials reads credentials by registry; nil for an empty text.
func parseCredentials(text string) (all cf.Credentials, err error) {
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, errors.New(`invalid --credentials: they must be like {"registry.example.com": {"username": "u", "password": "p"}}`)
	}
	return all, nil
}
