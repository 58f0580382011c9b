// Package packages tests what "make package" and "make image" build: deb and rpm are installed, upgraded and removed in
// a small root directory of their own, and the image runs in one, in namespaces of its own. Both need the superuser.
package packages
