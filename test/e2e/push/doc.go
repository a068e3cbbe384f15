// Package push tests how apps come to run, and what holds them: uploads, buildpacks, cells, containers.
package push
