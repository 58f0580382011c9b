package cli

// settings is the file with the settings of the machine: there is none on Windows, which has no place for it.
const settings = ""
