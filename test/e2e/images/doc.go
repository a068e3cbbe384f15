// Package images tests images of registries: as stacks, as apps, and apps that become images.
package images
