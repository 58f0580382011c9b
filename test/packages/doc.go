// Package packages tests what "make package" builds: deb and rpm are installed, upgraded and removed in a small root
// directory of their own.
package packages
