# Writes X(<descriptor>) for every message type declared in HEADERS to OUT; the entries of maps,
# which are called after their fields, are not types of their own.
set(text "")
foreach(header IN LISTS HEADERS)
    string(APPEND text "#include \"${header}\"\n")
endforeach()
string(APPEND text "#define TYPES(X)")
foreach(header IN LISTS HEADERS)
    file(STRINGS ${header} lines REGEX "^extern const ProtobufCMessageDescriptor ")
    foreach(line IN LISTS lines)
        string(REGEX REPLACE "^extern const ProtobufCMessageDescriptor ([a-z0-9_]+);" "\\1"
               descriptor "${line}")
        if(NOT descriptor MATCHES "[^_]_entry__descriptor$")
            string(APPEND text " \\\n    X(${descriptor})")
        endif()
    endforeach()
endforeach()
file(WRITE ${OUT} "${text}\n")
