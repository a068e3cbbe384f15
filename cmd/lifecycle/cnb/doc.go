// Package cnb stages and starts apps by Cloud Native Buildpacks, inside their
// containers: the platform side of the buildpack interface 0.7 to 0.12
// (buildpacks/spec: buildpack.md, platform.md). Directories, exit codes and what the
// launcher does with Cloud Foundry's arguments are those of cloudfoundry/cnbapplifecycle.
//
// A staging is Main: it finds the buildpacks that were brought into the container,
// detects, restores what the last staging cached, builds, and exports a droplet with
// the directories workspace and layers. Launch starts a process of such a droplet.
package cnb
