# What the emulated processor runs first, 64 KB below 4 GB: from 16 bits to 64, and on to system.S,
# which lies 64 KB below that.
        .code16
base:
begin:  cli
        lgdtl   %cs:table - base
        mov     %cr0, %eax
        or      $1, %al                 # protected
        mov     %eax, %cr0
        ljmpl   $0x08, $wide

        .code32
wide:   mov     $0x10, %ax
        mov     %ax, %ds
        mov     %ax, %es
        mov     %ax, %ss
        cld
        mov     $0xfffe0000, %esi
        mov     $0x100000, %edi
        mov     $0x4000, %ecx           # words
        rep movsl
        mov     $0x40620, %eax          # pages of 64 bits, SSE, its exceptions, XSAVE
        mov     %eax, %cr4
        mov     $0x101000, %eax         # `pages` of system.S
        mov     %eax, %cr3
        mov     $0xc0000080, %ecx       # EFER: system calls, long mode
        mov     $0x101, %eax
        xor     %edx, %edx
        wrmsr
        mov     $0x80000023, %eax       # pages, errors of the x87, its monitoring, protected
        mov     %eax, %cr0
        ljmpl   $0x18, $0x100000

        .balign 8
segments:
        .quad   0
        .quad   0x00cf9b000000ffff      # 0x08: code of 32 bits
        .quad   0x00cf93000000ffff      # 0x10: data
        .quad   0x00af9b000000ffff      # 0x18: code of 64 bits
        .quad   0x00cf93000000ffff      # 0x20: data
table:  .word   . - segments - 1
        .long   segments

        .org    0xfff0
        .code16
        jmp     begin
        .org    0x10000
